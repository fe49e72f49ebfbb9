/** What the soak follows. */
export const PAGE = 'backup.md';
export const SECTIONS = {
  save: 'Save a node',
  restore: 'After the loss of a server',
  setUpServer: 'Set pgBackRest up',
  saveServer: 'Save the database, then the node',
  restoreServer: 'Restore the database',
} as const;
/** The moment of the page's example. */
export const EXAMPLE_TIME = '2026-11-23 04:00:00+00';
