import { call, callRows, type ListedMessage, readPages, saysNothing, verifyListed } from '@skerry/client';
import {
  AppError,
  fieldsOf,
  LIMITS,
  NETWORK_POST,
  parseVrfClaim,
  type VrfVerdict,
  verifyVrfToken,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { NODE_API } from '@skerry/protocol/api/core/node';

/** Who published a key for random values, in a message whose signature was checked here. */
export interface KeyOwner {
  readonly address: string;
  readonly itemHash: string;
  /** Unix seconds, by its own word. */
  readonly time: number;
  /** Whether it is this core node, or one that this one knows. */
  readonly isKnown: boolean;
}

export interface JudgedDraw {
  readonly verdict: VrfVerdict;
  readonly seed: string;
  /**
   * Those who published the key of the proof: anybody can publish any key, under any date. Core nodes that this one knows come first,
   * then the oldest. Empty where this core node knows of none.
   */
  readonly owners: readonly KeyOwner[];
  /** Whether there are more announcements than are read here. */
  readonly isCut: boolean;
  /** Why nobody could be asked. */
  readonly unknown: string | null;
}

const PER_PAGE = 100;
/** Announcements that are read of those who are known, and of anybody: a node makes one when its keys change. */
const PAGES_MAX = 5;
/** Publishers of one key whose signatures are checked. */
const OWNERS_MAX = 20;

const listsKey = (content: unknown, key: string) => {
  const { vrf_keys: keys } = fieldsOf(fieldsOf(content).content);
  return Array.isArray(keys) && keys.some((one) => fieldsOf(one).public_key === key);
};

async function readOwner(
  coreUrl: string,
  row: ListedMessage,
  key: string,
): Promise<Omit<KeyOwner, 'isKnown'> | undefined> {
  try {
    const { sender, itemHash, time, content } = await verifyListed({ coreUrl }, row);
    return listsKey(content, key) ? { address: sender, itemHash, time } : undefined;
  } catch (error) {
    if (error instanceof AppError && saysNothing(error)) throw error;
    // What nobody signed says nothing about a key.
    return undefined;
  }
}

type Found = Pick<JudgedDraw, 'owners' | 'isCut'>;

/** Who published a key, of these addresses; of all where there are none. */
async function findAmong(
  coreUrl: string,
  key: string,
  known: ReadonlySet<string>,
  addresses?: readonly string[],
): Promise<Found> {
  const query = {
    msgTypes: 'POST',
    contentTypes: NETWORK_POST.coreNode,
    channels: 'net-core',
    addresses: addresses?.join(','),
    pagination: PER_PAGE,
    bodies: 'shared',
  } as const;
  const read = (place: object) =>
    callRows(coreUrl, NETWORK_LISTS_API.listNetworkMessages, 'messages', { query: { ...query, ...place } });
  const owners: KeyOwner[] = [];
  let pages = 0;
  for await (const { messages } of readPages(read)) {
    if (pages++ === PAGES_MAX) return { owners, isCut: true };
    for (const row of messages) {
      if (!listsKey(row.content, key)) continue;
      if (owners.length === OWNERS_MAX) return { owners, isCut: true };
      const owner = await readOwner(coreUrl, row, key);
      if (owner) owners.push({ ...owner, isKnown: known.has(owner.address) });
    }
  }
  return { owners, isCut: false };
}

/** Who published a key: of those who are known first, whom nobody can hide then by publishing as much. */
async function findOwners(coreUrl: string, key: string): Promise<Found> {
  const { address, trust } = await call(coreUrl, NODE_API.getInfo, {});
  const addresses = [address, ...trust.known_core_nodes.value].map((one) => one.toLowerCase());
  const known = new Set(addresses);
  const ofKnown = await findAmong(coreUrl, key, known, addresses.slice(0, LIMITS.filterValues));
  const ofAll = await findAmong(coreUrl, key, known);
  const all = new Map([...ofKnown.owners, ...ofAll.owners].map((one) => [one.itemHash, one]));
  const owners = [...all.values()].sort(
    (one, other) => Number(other.isKnown) - Number(one.isKnown) || one.time - other.time,
  );
  return { owners, isCut: ofKnown.isCut || ofAll.isCut };
}

/** Checks random values as an answer has them, offline, and asks who published their key. Throws AppError for what is no answer. */
export async function judgeDraw(coreUrl: string, answer: unknown): Promise<JudgedDraw> {
  const claim = parseVrfClaim(answer);
  const verdict = verifyVrfToken(claim);
  if (!verdict.valid) return { verdict, seed: claim.seed, owners: [], isCut: false, unknown: null };
  try {
    const found = await findOwners(coreUrl, verdict.publicKey);
    return { verdict, seed: claim.seed, ...found, unknown: null };
  } catch (error) {
    return {
      verdict,
      seed: claim.seed,
      owners: [],
      isCut: false,
      unknown: error instanceof Error ? error.message : String(error),
    };
  }
}
