import { readFile } from 'node:fs/promises';
import { AppError, createParser, LIMITS, parseAccountAddress } from '@skerry/protocol';
import { type Static, Type } from '@skerry/protocol/type';

/** The file that says which chains are indexed (docs/indexer.md). Addresses of endpoints may hold keys: it is a file and no variable. */

const count = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });

const ContractSettings = Type.Object(
  {
    address: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
    abi: Type.Array(Type.Unknown(), { minItems: 1, maxItems: 4096 }),
    start_block: Type.Optional(count(0, Number.MAX_SAFE_INTEGER)),
    transactions: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

const NetworkSettings = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
    chain_id: count(1, Number.MAX_SAFE_INTEGER),
    endpoints: Type.Array(Type.String({ pattern: '^https?://', maxLength: LIMITS.urlChars }), {
      minItems: 1,
      maxItems: 16,
    }),
    /** Servers that tell of new blocks, so that the head need not be polled as often. */
    subscriptions: Type.Optional(
      Type.Array(Type.String({ pattern: '^wss?://', maxLength: LIMITS.urlChars }), { maxItems: 4 }),
    ),
    contracts: Type.Optional(Type.Array(ContractSettings, { maxItems: 10_000 })),
    poll_ms: Type.Optional(count(20, 600_000)),
    timeout_ms: Type.Optional(count(100, 600_000)),
    /** `tag`: what the chain calls final; `depth`: so many blocks behind the head. */
    finality: Type.Optional(Type.Union([Type.Literal('tag'), Type.Literal('depth')])),
    finality_depth: Type.Optional(count(0, 1_000_000)),
    reorg_depth_max: Type.Optional(count(1, 4096)),
    range_blocks_max: Type.Optional(count(1, 1_000_000)),
    partition_blocks: Type.Optional(count(1_000, 1_000_000_000)),
    verification: Type.Optional(
      Type.Union([Type.Literal('ends'), Type.Literal('sample'), Type.Literal('every')]),
    ),
    /** false for chains that leave their blooms empty. */
    blooms: Type.Optional(Type.Boolean()),
    /** How long an endpoint that contradicts itself or others is left alone. */
    lie_rest_ms: Type.Optional(count(0, 86_400_000)),
    stall_ms: Type.Optional(count(1_000, 86_400_000)),
    /** What to do when the chain begins with another block than it did, or does not have the final blocks that were read. */
    on_restart: Type.Optional(Type.Union([Type.Literal('halt'), Type.Literal('reset')])),
  },
  { additionalProperties: false },
);

const IndexerFile = Type.Object(
  {
    networks: Type.Array(NetworkSettings, { maxItems: 64 }),
    watches_per_owner: Type.Optional(count(0, 100_000)),
    watches_max: Type.Optional(count(0, 100_000)),
    exempt_owners: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.addressChars }), { maxItems: 256 }),
    ),
    standing_credits: Type.Optional(count(0, Number.MAX_SAFE_INTEGER)),
    decode_threads: Type.Optional(count(0, 64)),
  },
  { additionalProperties: false },
);

export type ContractSettings = Static<typeof ContractSettings>;
export type NetworkSettings = Required<Static<typeof NetworkSettings>>;

export interface IndexerSettings {
  readonly networks: readonly NetworkSettings[];
  /** Contracts that one owner may have indexed by signed messages. */
  readonly watchesPerOwner: number;
  /** Those of all owners together. */
  readonly watchesMax: number;
  /** Addresses that may have indexed whatever they ask for; what they have counts for nobody. */
  readonly exemptOwners: readonly string[];
  /** Whole credits. The last half of what there is for all owners is for those who have as many; with 0 it is for everybody. */
  readonly standingCredits: number;
  readonly decodeThreads: number;
}

const DEFAULT_STALL_MS = 300_000;

/** What the operator of a network does whose endpoints rightly have another chain than the one that was read. */
export const READ_AGAIN =
  'if the endpoints are right, set "on_restart": "reset" for this network and restart the node';

/** While a subscription stands, the head is looked at unasked so many times less often. */
export const POLLS_SAVED = 15;
/** The least number of looks at the head that a stall takes, however far apart they are. */
const LOOKS_PER_STALL = 2;

/** Milliseconds without progress after which a network is stalled. */
export function stallMsOf({
  stall_ms,
  poll_ms,
  subscriptions,
}: Pick<NetworkSettings, 'stall_ms' | 'poll_ms' | 'subscriptions'>): number {
  const lookMs = poll_ms * (subscriptions.length > 0 ? POLLS_SAVED : 1);
  return Math.max(stall_ms, LOOKS_PER_STALL * lookMs);
}

const DEFAULTS = {
  contracts: [] as ContractSettings[],
  subscriptions: [] as string[],
  poll_ms: 2_000,
  timeout_ms: 30_000,
  finality: 'tag',
  finality_depth: 64,
  reorg_depth_max: 512,
  range_blocks_max: 10_000,
  partition_blocks: 1_000_000,
  verification: 'sample',
  blooms: true,
  lie_rest_ms: 60_000,
  stall_ms: DEFAULT_STALL_MS,
  on_restart: 'halt',
} as const;

const WATCHES_PER_OWNER = 20;
const WATCHES_MAX = 1_000;
const STANDING_CREDITS = 5_000_000;
const DECODE_THREADS = 1;

const parseFile = createParser(IndexerFile, 'the indexer file', 'INVALID_CONFIG');

/** In the spelling in which messages name their senders. Throws INVALID_CONFIG. */
function parseOwner(text: string): string {
  try {
    return parseAccountAddress(text);
  } catch (cause) {
    throw new AppError('INVALID_CONFIG', `exempt_owners in the indexer file: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** Throws INVALID_CONFIG. */
export function parseIndexerSettings(value: unknown): IndexerSettings {
  const file = parseFile(value);
  const names = file.networks.map(({ name }) => name);
  if (new Set(names).size !== names.length)
    throw new AppError('INVALID_CONFIG', 'two networks in the indexer file have the same name');
  return {
    networks: file.networks.map((network) => ({ ...DEFAULTS, ...network })),
    watchesPerOwner: file.watches_per_owner ?? WATCHES_PER_OWNER,
    watchesMax: file.watches_max ?? WATCHES_MAX,
    exemptOwners: file.exempt_owners?.map(parseOwner) ?? [],
    standingCredits: file.standing_credits ?? STANDING_CREDITS,
    decodeThreads: file.decode_threads ?? DECODE_THREADS,
  };
}

/** Networks may come from elsewhere, as from the anchor file: they have the limits that a file without a word of them has. */
export const NO_NETWORKS: IndexerSettings = parseIndexerSettings({ networks: [] });

/** @param path of the file; without one it names no networks. Throws INVALID_CONFIG */
export async function loadIndexerSettings(path: string | undefined): Promise<IndexerSettings> {
  if (path === undefined) return NO_NETWORKS;
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    // A message of the JSON parser may quote the file, and the file may hold keys.
    const why =
      cause instanceof SyntaxError
        ? 'is not JSON'
        : `cannot be read (${(cause as NodeJS.ErrnoException).code})`;
    throw new AppError('INVALID_CONFIG', `the indexer file ${path} ${why}`);
  }
  return parseIndexerSettings(value);
}
