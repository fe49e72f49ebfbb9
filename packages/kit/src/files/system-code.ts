/**
 * Errors of Linux for which libuv has no name, by their negative number (asm-generic/errno.h): Node gives them the code
 * `Unknown system error -N`.
 */
const UNNAMED: Readonly<Record<number, string>> = {
  [-74]: 'EBADMSG',
  [-116]: 'ESTALE',
  [-117]: 'EUCLEAN',
  [-122]: 'EDQUOT',
};

/** The code of an error of the system, such as `EIO`, also where Node does not know its name; undefined where it has none. */
export function systemCodeOf(error: unknown): string | undefined {
  const { code, errno } = (error ?? {}) as NodeJS.ErrnoException;
  return (errno === undefined ? undefined : UNNAMED[errno]) ?? code;
}
