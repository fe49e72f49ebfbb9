import { AppError } from '@skerry/protocol/forms';

/** Values that mean the same to systemd, to a shell and to us: no quotes, no blanks, nothing that is replaced. */
const PLAIN = /^[A-Za-z0-9_.,:/@%+=[\]*-]*$/;

/** Whether a value can stand in a settings file, and means the same to all who read it. Pure. */
export const isPlain = (value: string): boolean => PLAIN.test(value);

/**
 * The text of a settings file in which these variables have these values. Comments, order and other lines stay. A variable that
 * is only shown as a comment gets its line below it. Pure. Throws INVALID_PARAMETERS.
 */
export function mergeSettings(text: string, variables: Readonly<Record<string, string>>): string {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of Object.entries(variables)) {
    if (!isPlain(value))
      throw new AppError(
        'INVALID_PARAMETERS',
        `${name} cannot be ${JSON.stringify(value)} in a settings file`,
      );
    const line = `${name}=${value}`;
    const isOwn = (one: string) => new RegExp(`^\\s*(export\\s+)?${name}\\s*=`).test(one);
    const set = lines.findIndex(isOwn);
    if (set !== -1) {
      lines[set] = line;
      // The last of several counts.
      for (let at = lines.length - 1; at > set; at--) if (isOwn(lines[at]!)) lines.splice(at, 1);
      continue;
    }
    const shown = lines.findIndex((one) => one.replace(/^#\s*/, '').startsWith(`${name}=`));
    if (shown === -1) lines.push(line);
    else lines.splice(shown + 1, 0, line);
  }
  return `${lines.join('\n')}\n`;
}
