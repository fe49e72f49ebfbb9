import { AppError } from '../errors.ts';
import { bytesToHex, hexToBytes } from '../hex.ts';

/**
 * Which of some files a node has. The question is a version byte, then the SHA-256 of each; the answer a version byte, then a bit for
 * each in the same order, of a byte the highest first. What is left of the last byte is zero.
 */

const VERSION = 1;
const NAME_BYTES = 32;

/** Files in one question. */
export const ASKED_FILES_MAX = 1_000;
export const ASKED_FILES_BODY_BYTES = 1 + ASKED_FILES_MAX * NAME_BYTES;
export const HELD_FILES_BODY_BYTES = 1 + Math.ceil(ASKED_FILES_MAX / 8);

const malformed = (what: string) => new AppError('INVALID_PARAMETERS', what);
const bitOf = (at: number) => 0x80 >> (at & 7);

/** @param names SHA-256 in hexadecimal, at most ASKED_FILES_MAX */
export function encodeAskedFiles(names: readonly string[]): Uint8Array {
  const body = new Uint8Array(1 + names.length * NAME_BYTES);
  body[0] = VERSION;
  for (const [at, name] of names.entries()) body.set(hexToBytes(name)!, 1 + at * NAME_BYTES);
  return body;
}

/** @returns SHA-256 in hexadecimal. @throws AppError INVALID_PARAMETERS */
export function decodeAskedFiles(body: Uint8Array): string[] {
  const isWhole = body[0] === VERSION && (body.length - 1) % NAME_BYTES === 0;
  if (!isWhole || body.length > ASKED_FILES_BODY_BYTES)
    throw malformed(
      `the body is a byte ${VERSION} and the SHA-256 of up to ${ASKED_FILES_MAX} files, ${NAME_BYTES} bytes each`,
    );
  return Array.from({ length: (body.length - 1) / NAME_BYTES }, (_, at) =>
    bytesToHex(body.subarray(1 + at * NAME_BYTES, 1 + (at + 1) * NAME_BYTES)),
  );
}

/** @param names those of the question, in its order */
export function encodeHeldFiles(names: readonly string[], held: ReadonlySet<string>): Uint8Array {
  const body = new Uint8Array(1 + Math.ceil(names.length / 8));
  body[0] = VERSION;
  for (const [at, name] of names.entries()) if (held.has(name)) body[1 + (at >> 3)]! |= bitOf(at);
  return body;
}

/** @param names those of the question. @returns those of them that are there. @throws AppError INVALID_PARAMETERS */
export function decodeHeldFiles(body: Uint8Array, names: readonly string[]): string[] {
  const spare = (8 - (names.length & 7)) & 7;
  const isWhole = body[0] === VERSION && body.length === 1 + Math.ceil(names.length / 8);
  if (!isWhole || (spare > 0 && (body.at(-1)! & ((1 << spare) - 1)) !== 0))
    throw malformed(`the answer is no list of a bit for each of ${names.length} files`);
  return names.filter((_, at) => (body[1 + (at >> 3)]! & bitOf(at)) !== 0);
}
