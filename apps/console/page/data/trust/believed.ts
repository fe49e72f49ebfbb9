import { signal } from '@preact/signals';
import { fields, list, maybe, type Read, text } from '../../pure/read.ts';
import type { Info } from '../answers.ts';
import { CORE_URL } from '../network.ts';

/** Whom the reader believes, in the place of the core node's lists. It stays in this browser, for this network alone. */

const KEY = `skerry.believed.${CORE_URL}`;

const readBelieved = fields({
  schedulers: maybe(list(text)),
  scoring_publishers: maybe(list(text)),
  credit_publishers: maybe(list(text)),
  /** Core nodes that are asked beside those that the core node names. */
  core_nodes: maybe(list(text)),
});
/** Null: as the core node has it. */
export type Believed = Read<typeof readBelieved>;
export type BelievedName = keyof Believed;

const NOBODY: Believed = {
  schedulers: null,
  scoring_publishers: null,
  credit_publishers: null,
  core_nodes: null,
};

function load(): Believed {
  try {
    return readBelieved(JSON.parse(localStorage.getItem(KEY) ?? 'null'), 'the lists');
  } catch {
    return NOBODY;
  }
}

export const believed = signal<Believed>(load());
// Another tab has the same lists.
addEventListener('storage', ({ key }) => {
  if (key === KEY || key === null) believed.value = load();
});

/** @param list null: as the core node has it again */
export function believe(name: BelievedName, list: readonly string[] | null): void {
  believed.value = { ...load(), [name]: list };
  const isEmpty = Object.values(believed.value).every((one) => one === null);
  if (isEmpty) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, JSON.stringify(believed.value));
}

/** Addresses of EVM chains are compared in lower case. */
const normalized = (address: string) => (address.startsWith('0x') ? address.toLowerCase() : address);

/** What the core node tells, with the reader's lists in the place of its own. */
export function withBeliefs(info: Info): Info {
  const own = believed.value;
  const { trust } = info;
  const listOf = (name: Exclude<keyof Info['trust'], 'credit_enforcement'>) => {
    const mine = own[name];
    return mine === null ? trust[name] : { value: mine.map(normalized), source: 'reader' };
  };
  return {
    ...info,
    trust: {
      ...trust,
      schedulers: listOf('schedulers'),
      scoring_publishers: listOf('scoring_publishers'),
      credit_publishers: listOf('credit_publishers'),
    },
  };
}
