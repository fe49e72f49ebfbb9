import fc from 'fast-check';

const LAST = 0x10ffff;
/** Code points that are no characters: half of one in UTF-16. */
const SURROGATES = { first: 0xd800, count: 0x800 } as const;

function build(index: number): string {
  return String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count);
}

function indexOf(character: unknown): number {
  const point = typeof character === 'string' ? character.codePointAt(0) : undefined;
  if (point === undefined || String.fromCodePoint(point) !== character || !character.isWellFormed())
    throw new Error('not one character');
  return point < SURROGATES.first ? point : point - SURROGATES.count;
}

/**
 * Any character, as a unit of strings: they are those of fast-check's own unit `binary`. That one makes a table of all 1.1 million
 * with the first string, which takes a second in each process, and garbage is collected around it ever after.
 */
export const anyCharacter = fc.nat({ max: LAST - SURROGATES.count }).map(build, indexOf);
