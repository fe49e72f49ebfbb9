import { call, type ListedMessage, verifyListed } from '@skerry/client';
import { fieldsOf, parseVrfClaim, type VrfVerdict, verifyVrfToken } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';

/** Who published a key for random values, in a message whose signature was checked here. */
export interface KeyOwner {
  readonly address: string;
  readonly itemHash: string;
  /** Unix seconds. */
  readonly time: number;
}

export interface JudgedDraw {
  readonly verdict: VrfVerdict;
  readonly seed: string;
  /** Those who published the key of the proof, oldest first: anybody can publish any key. Empty where this core node knows of none. */
  readonly owners: readonly KeyOwner[];
  /** Why nobody could be asked. */
  readonly unknown: string | null;
}

/** Announcements of keys that are read: a node makes one when its keys change. */
const ANNOUNCEMENTS_MAX = 100;

const listsKey = (content: unknown, key: string) => {
  const { vrf_keys: keys } = fieldsOf(fieldsOf(content).content);
  return Array.isArray(keys) && keys.some((one) => fieldsOf(one).public_key === key);
};

async function readOwner(coreUrl: string, row: ListedMessage, key: string): Promise<KeyOwner | undefined> {
  try {
    const { sender, itemHash, time, content } = await verifyListed({ coreUrl }, row);
    return listsKey(content, key) ? { address: sender, itemHash, time } : undefined;
  } catch {
    // What nobody signed says nothing about a key.
    return undefined;
  }
}

async function findOwners(coreUrl: string, key: string): Promise<KeyOwner[]> {
  const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, {
    query: {
      msgTypes: 'POST',
      contentTypes: 'net-core-node',
      channels: 'net-core',
      pagination: ANNOUNCEMENTS_MAX,
    },
  });
  const found: KeyOwner[] = [];
  for (const row of messages) {
    if (!listsKey(row.content, key)) continue;
    const owner = await readOwner(coreUrl, row, key);
    if (owner) found.push(owner);
  }
  return found.sort((one, other) => one.time - other.time);
}

/** Checks random values as an answer has them, offline, and asks who published their key. Throws AppError for what is no answer. */
export async function judgeDraw(coreUrl: string, answer: unknown): Promise<JudgedDraw> {
  const claim = parseVrfClaim(answer);
  const verdict = verifyVrfToken(claim);
  if (!verdict.valid) return { verdict, seed: claim.seed, owners: [], unknown: null };
  try {
    const owners = await findOwners(coreUrl, verdict.publicKey);
    return { verdict, seed: claim.seed, owners, unknown: null };
  } catch (error) {
    return {
      verdict,
      seed: claim.seed,
      owners: [],
      unknown: error instanceof Error ? error.message : String(error),
    };
  }
}
