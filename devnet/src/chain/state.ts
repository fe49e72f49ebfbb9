import { readFile, rename, stat } from 'node:fs/promises';
import { isMissing, writeFileAtomically } from '@skerry/kit';

/** A chain that has run for days under load; what is larger is left as it is, since all of it is held in memory. */
const STATE_BYTES_MAX = 256 * 1024 ** 2;

interface Block {
  readonly header: { readonly number: string; readonly timestamp: string };
}

/**
 * Anvil makes a block 0 at each start, also where it then loads one, writes all of them in any order, and of those that it loads any
 * may win. Block 1 stands on the oldest one. Pure.
 *
 * @param text what anvil wrote
 * @returns the same without the others, of which nothing else knows; the very same where there are none
 * @throws SyntaxError where it is not whole
 */
function keepFirstGenesis(text: string): string {
  const { blocks } = JSON.parse(text) as { blocks?: readonly Block[] };
  const starts = (blocks ?? []).filter(({ header }) => Number(header.number) === 0);
  const byAge = starts.toSorted(
    (one, other) => Number(one.header.timestamp) - Number(other.header.timestamp),
  );
  // Cut out, not written anew: a number may have more digits than JavaScript keeps.
  return byAge.slice(1).reduce((rest, block) => {
    const other = JSON.stringify(block);
    return rest.includes(`${other},`) ? rest.replace(`${other},`, '') : rest.replace(`,${other}`, '');
  }, text);
}

/**
 * Makes the state that an earlier start left one that the next start can go on with. Anvil writes it in place: one that was killed
 * meanwhile leaves a part, which no start reads; it is kept beside, and the chain begins anew.
 *
 * @param tell of what was lost
 */
export async function mendState(path: string, tell: (line: string) => void): Promise<void> {
  try {
    const { size } = await stat(path);
    if (size > STATE_BYTES_MAX) return;
    const text = await readFile(path, 'utf8');
    const mended = keepFirstGenesis(text);
    if (mended !== text) await writeFileAtomically(path, mended, 0o600);
  } catch (error) {
    if (isMissing(error)) return;
    if (!(error instanceof SyntaxError)) throw error;
    const torn = `${path}.torn`;
    await rename(path, torn);
    tell(`the chain begins anew: it was killed while it wrote its state, of which ${torn} is what was left`);
  }
}
