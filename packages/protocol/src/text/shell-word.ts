/** A word of a shell's command, as POSIX quotes it: a path or a name in a command that people are told to type. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
