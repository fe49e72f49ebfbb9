const PASSPHRASE_CHARS_MIN = 10;

/** Why a passphrase is not taken; undefined where it is. */
export const passphraseFault = (text: string): string | undefined =>
  [...text].length < PASSPHRASE_CHARS_MIN
    ? `A passphrase has at least ${PASSPHRASE_CHARS_MIN} characters.`
    : undefined;
