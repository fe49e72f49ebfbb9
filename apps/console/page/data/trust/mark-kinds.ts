/** How sure the page is of something. */
export const MARKS = {
  proven: { sign: '✓', tone: 'good', meaning: 'proven in this tab' },
  agreed: { sign: '≈', tone: 'accent', meaning: 'nodes agree' },
  said: { sign: '○', tone: 'plain', meaning: "one node's word" },
  waiting: { sign: '…', tone: 'plain', meaning: 'being checked' },
  wrong: { sign: '✗', tone: 'bad', meaning: 'contradicted here' },
} as const;
export type MarkKind = keyof typeof MARKS;
export const MARK_KINDS = Object.keys(MARKS) as readonly MarkKind[];
