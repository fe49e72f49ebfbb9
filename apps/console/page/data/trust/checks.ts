import { signal } from '@preact/signals';
import { useEffect, useId } from 'preact/hooks';
import type { ToldMessage } from '../../workers/listed.ts';
import type { Judged } from '../../workers/messages.ts';
import { verify } from '../workers.ts';

/**
 * Lines that are shown are checked beside the page, some at a time with a pause between: what goes by faster than that is not
 * checked, and says so.
 */

const BATCH = 20;
const PAUSE_MS = 300;
/** Lines that are remembered: a list is told again and again. */
const KNOWN_MAX = 2_000;

export type TellableMessage = Omit<ToldMessage, 'shared'> & { readonly shared: string | null };
export interface Check {
  readonly mark: 'proven' | 'waiting' | 'wrong' | 'said';
  /** What is wrong with it. */
  readonly failure: string | undefined;
  /** Of a post that was checked, as its sender calls it. */
  readonly postType?: string | undefined;
}

const known = new Map<string, Judged>();
const wanted = new Map<string, readonly ToldMessage[]>();
/** Counts what was checked; whoever reads it is drawn again after each batch. */
export const checkedCount = signal(0);
let isBusy = false;

const keyOf = ({ item_hash, sender, type, channel, time, shared }: TellableMessage) =>
  JSON.stringify([item_hash, sender, type, channel, time, shared]);

const partsOf = ({ item_hash, sender, type, channel, time, shared }: ToldMessage): ToldMessage => ({
  ...{ item_hash, sender, type, channel, time, shared },
});

function remember(rows: readonly ToldMessage[], judged: readonly Judged[]): void {
  if (known.size + rows.length > KNOWN_MAX) known.clear();
  for (const [at, row] of rows.entries()) known.set(keyOf(row), judged[at]!);
  checkedCount.value += rows.length;
}

async function work(): Promise<void> {
  if (isBusy) return;
  isBusy = true;
  try {
    for (;;) {
      const open = [...wanted.values()].flat().filter((row) => !known.has(keyOf(row)));
      if (open.length === 0) return;
      const batch = open.slice(0, BATCH).map(partsOf);
      remember(batch, await verify('listed', { rows: batch }));
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  } catch {
    // The verifier could not be loaded: the lines stay unchecked until it is wanted again.
  } finally {
    isBusy = false;
  }
}

const hasBody = (row: TellableMessage): row is ToldMessage => row.shared !== null;

function checkOf(row: TellableMessage): Check {
  if (!hasBody(row)) return { mark: 'said', failure: undefined };
  const judged = known.get(keyOf(row));
  if (!judged) return { mark: 'waiting', failure: undefined };
  const { failure, postType } = judged;
  return { mark: failure ? 'wrong' : 'proven', failure: failure?.message, postType };
}

/** Has the lines that are shown checked, the first ones first. Gives what was found of each. */
export function useChecks(rows: readonly TellableMessage[]): (row: TellableMessage) => Check {
  const id = useId();
  const key = JSON.stringify(rows.map((row) => row.item_hash));
  useEffect(() => {
    wanted.set(id, rows.filter(hasBody));
    void work();
  }, [key]);
  useEffect(() => () => void wanted.delete(id), []);
  void checkedCount.value;
  return checkOf;
}
