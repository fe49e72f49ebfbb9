/** What the doctor looks at, and what it found. */

export const GROUPS = ['This server', 'Settings', 'The network', 'Seen from outside'] as const;
export type Group = (typeof GROUPS)[number];

/** `warn`: the role works without it, worse. */
export type Outcome = 'ok' | 'warn' | 'fail';

export interface Check {
  readonly group: Group;
  /** Stable, for programs. */
  readonly code: string;
  readonly outcome: Outcome;
  /** What was found, in a few words. */
  readonly text: string;
  /** One sentence. A command, an option or a record that is to be copied stands at its end after a colon, without a full stop. */
  readonly mend?: string;
  /** A section of the documentation. */
  readonly docs?: string;
}

export type Finding = Omit<Check, 'group' | 'code' | 'outcome'>;

/** Makes checks of one group. */
export function checksOf(group: Group) {
  const of =
    (outcome: Outcome) =>
    (code: string, text: string, more: Omit<Finding, 'text'> = {}): Check => ({
      ...{ group, code, outcome, text },
      ...more,
    });
  return { ok: of('ok'), warn: of('warn'), fail: of('fail') };
}
