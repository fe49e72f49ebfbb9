import { AppError, createCheck } from '@skerry/protocol';
import { type Static, type TSchema, Type } from '@skerry/protocol/type';

const CURSOR_CHARS_MAX = 1_024;

const refuse = (cause?: unknown): never => {
  throw new AppError('INVALID_CURSOR', 'send a cursor exactly as an earlier page returned it', { cause });
};

/** No text that was ever kept holds NUL, and the database cannot even compare with one. */
const holdsNul = (value: object) =>
  Object.values(value).some((one) => typeof one === 'string' && one.includes('\0'));

/** A list's cursor: opaque to the caller, base64url of JSON of one shape. An empty text is the beginning. */
export function createCursor<T extends TSchema>(shape: T) {
  const hasShape = createCheck(shape);
  return {
    write: (value: Static<T>) => Buffer.from(JSON.stringify(value)).toString('base64url'),
    /** Throws INVALID_CURSOR. */
    read(text: string | undefined): Static<T> | undefined {
      if (text === undefined || text === '') return undefined;
      if (text.length > CURSOR_CHARS_MAX) refuse();
      let value: unknown;
      try {
        value = JSON.parse(Buffer.from(text, 'base64url').toString());
      } catch (error) {
        refuse(error);
      }
      return hasShape(value) && !holdsNul(value as object) ? value : refuse();
    },
  };
}

/** A place in a list by time and hash. */
export const placeCursor = createCursor(
  Type.Object({ t: Type.Number(), h: Type.String({ maxLength: 128 }) }, { additionalProperties: false }),
);

/** The same in a list by first confirmation; null: nothing confirms it. */
export const confirmedCursor = createCursor(
  Type.Object(
    {
      c: Type.Union([Type.Number(), Type.Null()]),
      t: Type.Number(),
      h: Type.String({ maxLength: 128 }),
    },
    { additionalProperties: false },
  ),
);
