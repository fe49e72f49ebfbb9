/** Lines of a machine's console as a file has them: when each came, in UTC, and what it says. */
export const logText = (lines: readonly { readonly atMs: number; readonly text: string }[]): string =>
  lines.map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text}\n`).join('');
