import { call } from '@skerry/client/call';
import { NODE_API, type TrustView } from '@skerry/protocol/api/core/node';
import { plainText } from '../output/text.ts';

interface Trusted {
  readonly value: readonly string[] | boolean;
  readonly source: string;
}

/** Whom a node says that it believes, by name. */
export type TrustShown = Readonly<Record<string, Trusted>>;

export async function readTrust(url: string): Promise<TrustView> {
  return (await call(url, NODE_API.getInfo, {})).trust;
}

/** Whose keys for random values a node knows changes nothing of its state. */
const NO_STATE = ['known_core_nodes'];

const SOURCES: Readonly<Record<string, string>> = {
  setting: 'set',
  peers: 'as its peers',
  unset: 'not set',
};

const textOf = ({ value }: Trusted) =>
  typeof value === 'boolean' ? (value ? 'yes' : 'no') : value.map(plainText).join(', ') || 'nobody';

/** A line for each list: what is in it, and where from. */
export const trustFields = (trust: TrustShown): [string, string][] =>
  Object.entries(trust).map(([name, trusted]) => [
    plainText(name).replaceAll('_', ' '),
    `${textOf(trusted)} (${SOURCES[trusted.source] ?? plainText(trusted.source)})`,
  ]);

export interface TrustDifference {
  readonly name: string;
  readonly first: Trusted;
  readonly second: Trusted;
}

/** What the two nodes believe differently, and their state may differ by. Pure. */
export function differingTrust(first: TrustShown, second: TrustShown): TrustDifference[] {
  return Object.keys(first).flatMap((name) => {
    const [one, other] = [first[name]!, second[name]];
    const isSame = other === undefined || textOf(one) === textOf(other);
    return isSame || NO_STATE.includes(name) ? [] : [{ name, first: one, second: other }];
  });
}

export const differenceFields = (differences: readonly TrustDifference[]): [string, string][] =>
  differences.map(({ name, first, second }) => [
    `${plainText(name).replaceAll('_', ' ')} differ`,
    `${textOf(first)} on the first, ${textOf(second)} on the second`,
  ]);
