import { readFile } from 'node:fs/promises';
import { messageArchive } from '@skerry/contracts';
import { type IndexerSettings, type NetworkSettings, parseIndexerSettings } from '@skerry/indexer';
import { AppError, CHAINS, createParser, parseEvmAddress } from '@skerry/protocol';
import { type Static, Type } from '@skerry/protocol/type';

/** The file that says which contracts are followed for archives of messages, and who packs (docs/anchoring.md). */

const ADDRESS = '^0x[0-9a-fA-F]{40}$';
const count = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });

const Packing = Type.Object(
  {
    /** A file with the private key of an emitter: `0x` and 64 hexadecimal digits, for its owner alone. */
    key_file: Type.String({ minLength: 1, maxLength: 4096 }),
    interval_seconds: Type.Optional(count(1, 86_400)),
    messages_max: Type.Optional(count(1, 10_000)),
    max_fee_gwei: Type.Optional(count(1, 1_000_000)),
    resend_seconds: Type.Optional(count(1, 86_400)),
  },
  { additionalProperties: false },
);

const Anchor = Type.Object(
  {
    /** A network of the indexer file by its name, or one as it is written there. */
    network: Type.Union([Type.String(), Type.Object({ name: Type.String() })]),
    /** The chain code in confirmations. */
    chain: Type.String({ minLength: 1, maxLength: 16 }),
    contract: Type.String({ pattern: ADDRESS }),
    start_block: Type.Optional(count(0, Number.MAX_SAFE_INTEGER)),
    emitters: Type.Array(Type.String({ pattern: ADDRESS }), { maxItems: 256 }),
    archive_horizon_seconds: Type.Optional(count(1, 31_536_000)),
    poll_ms: Type.Optional(count(20, 600_000)),
    packing: Type.Optional(Packing),
  },
  { additionalProperties: false },
);

const AnchorFile = Type.Object(
  { anchors: Type.Array(Anchor, { maxItems: 8 }) },
  { additionalProperties: false },
);

const parseFile = createParser(AnchorFile, 'the anchor file', 'INVALID_CONFIG');

export interface PackingSettings {
  readonly keyFile: string;
  readonly intervalMs: number;
  readonly messagesMax: number;
  readonly maxFeeGwei: number;
  /** A transaction that is in no block after so long is sent again. */
  readonly resendMs: number;
}

export interface AnchorSettings {
  /** Settings of the network, with the contract among those that are indexed. */
  readonly network: NetworkSettings;
  readonly chain: string;
  /** Lower case, as all addresses here. */
  readonly contract: string;
  readonly startBlock: number;
  readonly emitters: ReadonlySet<string>;
  /** An archive that cannot be fetched for so long is refused. */
  readonly archiveHorizonMs: number;
  readonly pollMs: number;
  readonly packing: PackingSettings | undefined;
}

const ARCHIVE_HORIZON_SECONDS = 7 * 86_400;
const POLL_MS = 1_000;
/** As deployed nodes: a batch half a minute after the one before, up to this fee. */
const PACKING = {
  interval_seconds: 35,
  messages_max: 10_000,
  max_fee_gwei: 150,
  resend_seconds: 180,
} as const;

const isSyncEvent = (one: unknown) =>
  typeof one === 'object' && one !== null && 'name' in one && one.name === 'SyncEvent';
/** Of the contract's events the one that names archives. */
export const SYNC_EVENT_ABI = messageArchive.abi.filter(isSyncEvent);

const invalid = (message: string) => new AppError('INVALID_CONFIG', `the anchor file: ${message}`);

function packingOf(packing: Static<typeof Packing>): PackingSettings {
  const all = { ...PACKING, ...packing };
  return {
    keyFile: all.key_file,
    intervalMs: all.interval_seconds * 1000,
    messagesMax: all.messages_max,
    maxFeeGwei: all.max_fee_gwei,
    resendMs: all.resend_seconds * 1000,
  };
}

function networkOf(anchor: Static<typeof Anchor>, indexer: IndexerSettings): NetworkSettings {
  const { network, contract, start_block = 0 } = anchor;
  const name = typeof network === 'string' ? network : network.name;
  const known = indexer.networks.find((one) => one.name === name);
  if (!known && typeof network === 'string') throw invalid(`no indexed network has the name ${name}`);
  const base = known ?? parseIndexerSettings({ networks: [network] }).networks[0]!;
  const wanted = { address: contract, abi: SYNC_EVENT_ABI, start_block };
  return { ...base, contracts: [...base.contracts, wanted] };
}

/**
 * @param indexer what is indexed anyway
 * @returns the anchors, and what is to be indexed with them
 * @throws AppError INVALID_CONFIG
 */
export function parseAnchorSettings(
  value: unknown,
  indexer: IndexerSettings,
): { readonly anchors: readonly AnchorSettings[]; readonly indexer: IndexerSettings } {
  let indexed = indexer;
  const anchors = parseFile(value).anchors.map((anchor): AnchorSettings => {
    if (!Object.hasOwn(CHAINS, anchor.chain)) throw invalid(`there is no chain ${anchor.chain}`);
    const network = networkOf(anchor, indexed);
    const others = indexed.networks.filter(({ name }) => name !== network.name);
    indexed = { ...indexed, networks: [...others, network] };
    return {
      network,
      chain: anchor.chain,
      contract: anchor.contract.toLowerCase(),
      startBlock: anchor.start_block ?? 0,
      emitters: new Set<string>(anchor.emitters.map(parseEvmAddress)),
      archiveHorizonMs: (anchor.archive_horizon_seconds ?? ARCHIVE_HORIZON_SECONDS) * 1000,
      pollMs: anchor.poll_ms ?? POLL_MS,
      packing: anchor.packing && packingOf(anchor.packing),
    };
  });
  const names = anchors.map(({ network }) => network.name);
  if (new Set(names).size !== names.length) throw invalid('two anchors use the same network');
  return { anchors, indexer: indexed };
}

/** @param path of the file; nothing is anchored without one. Throws INVALID_CONFIG */
export async function loadAnchorSettings(
  path: string | undefined,
  indexer: IndexerSettings,
): Promise<ReturnType<typeof parseAnchorSettings>> {
  if (path === undefined) return { anchors: [], indexer };
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    // A message of the JSON parser may quote the file, and addresses of endpoints may hold keys.
    throw invalid(
      cause instanceof SyntaxError
        ? `${path} is not JSON`
        : `cannot read ${path} (${(cause as NodeJS.ErrnoException).code})`,
    );
  }
  return parseAnchorSettings(value, indexer);
}
