/** The second half of a character beyond the first 65,536 is another unit of a text. */
const HALF_AT_END = /[\uD800-\uDBFF]$/;

/**
 * The beginning of a text that somebody else wrote, as a message can hold it: a core node refuses NUL characters and halves of
 * surrogate pairs. Pure.
 */
export const storableText = (text: string, charsMax: number): string =>
  text.slice(0, charsMax).replace(HALF_AT_END, '').toWellFormed().replaceAll('\0', '\uFFFD');
