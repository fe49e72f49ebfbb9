/** A word of this many letters may have one wrong, one of twice as many two. */
const LETTERS_PER_MISTAKE = 4;
const MISTAKES_MAX = 3;
/** What is longer is no slip of the hand, and costs more to compare. */
const WORD_CHARS_MAX = 100;

/** How many letters must be added, left out, exchanged or swapped with the next one (optimal string alignment). */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row++) {
    const next = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      next[column] = Math.min(
        last[column]! + 1,
        next[column - 1]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
        isSwapped ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = last;
    last = next;
  }
  return last[other.length]!;
}

/** The known word that somebody probably meant, or undefined where none is near. */
export function findClosest(word: string, known: readonly string[]): string | undefined {
  if (word.length > WORD_CHARS_MAX) return undefined;
  const allowed = Math.min(MISTAKES_MAX, Math.max(1, Math.floor(word.length / LETTERS_PER_MISTAKE)));
  const near = known
    .filter((one) => Math.abs(one.length - word.length) <= allowed)
    .map((one) => ({ one, mistakes: distance(word, one) }))
    .filter(({ mistakes }) => mistakes <= allowed);
  return near.sort((a, b) => a.mistakes - b.mistakes)[0]?.one;
}
