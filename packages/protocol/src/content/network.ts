import { sha256Hex } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { ANY_HASH_PATTERN, HASH64_PATTERN } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';

/**
 * What services tell each other: POST messages of these content types (docs/messages.md). Anyone may send them;
 * they have an effect only when the signer has the standing that each one asks for.
 */
export const NETWORK_POST = {
  node: 'net-node',
  coreNode: 'net-core-node',
  allocation: 'net-allocation',
  instanceStatus: 'net-instance-status',
  index: 'net-index',
  runners: 'net-runners',
  programRuns: 'net-program-runs',
} as const;

export const NETWORK_CHANNEL = {
  compute: 'net-compute',
  core: 'net-core',
  scheduling: 'net-scheduling',
  programs: 'net-programs',
} as const;

const strict = { additionalProperties: false } as const;
/** As far as a date goes (ECMA-262, "Time Values and Time Range"): what is later no column of milliseconds holds. */
export const UNIX_MS_MAX = 8_640_000_000_000_000;
const UnixMs = (description = 'milliseconds since 1970') =>
  Type.Integer({ minimum: 0, maximum: UNIX_MS_MAX, description });
const UnixSeconds = { minimum: 0, maximum: UNIX_MS_MAX / 1000 } as const;
const Hash = Type.String({ pattern: HASH64_PATTERN });
const Address = Type.String({ pattern: '^0x[0-9a-f]{40}$' });

/** Why something is as it is: a code for programs, a sentence for people. */
export const Reason = Type.Object(
  {
    code: Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
    message: Type.String({ maxLength: LIMITS.reasonChars }),
  },
  strict,
);
export type Reason = Static<typeof Reason>;

/** The reason of a node that wants to be empty: it gets nothing new, and what it holds moves away as far as there is room. */
export const NODE_DRAINING = 'NODE_DRAINING';

/** How far an instance is (docs/decisions.md 14). */
export const Phase = Type.Union([
  Type.Literal('scheduled'),
  Type.Literal('preparing'),
  Type.Literal('starting'),
  Type.Literal('running'),
  Type.Literal('stopping'),
  Type.Literal('stopped'),
  Type.Literal('failed'),
]);
export type Phase = Static<typeof Phase>;

/** `net-node`: a compute node and what it can hold. Signed by the node's own key. */
export const NodeContent = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', maxLength: LIMITS.urlChars }),
    ipv6_prefix: Type.String({ maxLength: 64, description: 'the /64 that instances get addresses from' }),
    capacity: Type.Object(
      {
        cpu: Type.Integer({ minimum: 0 }),
        memory_mib: Type.Integer({ minimum: 0 }),
        disk_gib: Type.Integer({ minimum: 0 }),
      },
      strict,
    ),
    features: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }),
    version: Type.String({ maxLength: 64 }),
    announced_at_ms: UnixMs('milliseconds since 1970; the latest announcement counts'),
    reason: Type.Union([Reason, Type.Null()], {
      description: 'why the node can hold nothing, where it cannot',
    }),
  },
  strict,
);
export type NodeContent = Static<typeof NodeContent>;

/**
 * When a node announced itself, milliseconds since 1970. A date that is further ahead of its message than any clock may be has no
 * weight: the message's own time counts, or nothing later would ever be newer. Pure.
 * @param time of the message, Unix seconds; undefined where it is not told
 */
export function announcedAtMs(
  { announced_at_ms: atMs }: Pick<NodeContent, 'announced_at_ms'>,
  time: number | undefined,
): number {
  if (time === undefined || atMs <= (time + LIMITS.futureSeconds) * 1000) return atMs;
  return Math.floor(time * 1000);
}

/**
 * `net-core-node`: a core node and its keys for random values, the one in use first (docs/randomness.md). Signed by the node's own
 * key. Every announcement counts, so that a key once published stays known.
 */
export const CoreNodeContent = Type.Object(
  {
    vrf_keys: Type.Array(
      Type.Object(
        {
          suite: Type.String({ maxLength: 64, description: 'ciphersuite of RFC 9381' }),
          public_key: Type.String({ pattern: '^[0-9a-f]{64,66}$' }),
          from: Type.Integer({ ...UnixSeconds, description: 'Unix seconds' }),
          until: Type.Union([Type.Integer(UnixSeconds), Type.Null()], {
            description: 'Unix seconds; null for the key in use',
          }),
        },
        strict,
      ),
      { minItems: 1, maxItems: LIMITS.vrfPublishedKeys },
    ),
    announced_at_ms: UnixMs(),
  },
  strict,
);
export type CoreNodeContent = Static<typeof CoreNodeContent>;

/** `net-allocation`: which node runs an instance, or why none does. Signed by a scheduler that the core node trusts. */
export const AllocationContent = Type.Object(
  {
    instance_id: Hash,
    node_id: Type.Union([Hash, Type.Null()]),
    node_address: Type.Union([Address, Type.Null()]),
    ipv6: Type.String({ maxLength: 45, description: 'empty where there is no node' }),
    reason: Type.Union([Reason, Type.Null()]),
    decided_at_ms: UnixMs('milliseconds since 1970; the latest decision counts'),
  },
  strict,
);
export type AllocationContent = Static<typeof AllocationContent>;

/** `net-instance-status`: what is observed of an instance. Signed by the node it is allocated to. */
export const InstanceStatusContent = Type.Object(
  {
    instance_id: Hash,
    phase: Phase,
    reason: Type.Union([Reason, Type.Null()]),
    observed_at_ms: UnixMs('milliseconds since 1970; the latest observation counts'),
    restart_id: Type.Union([Hash, Type.Null()], { description: 'the last restart that was carried out' }),
  },
  strict,
);
export type InstanceStatusContent = Static<typeof InstanceStatusContent>;

/** Compute nodes in one `net-runners`, and of each the names of what runs there. */
export const RUNNERS_MAX = 256;
export const RUNTIMES_MAX = 16;
/** Runs in one `net-program-runs`. */
const RUNS_MAX = 100;
const DURATION_MS_MAX = 2 * LIMITS.programTimeoutSecondsMax * 1000;

/** A compute node that runs programs. */
export const Runner = Type.Object(
  {
    node_id: Hash,
    node_address: Address,
    url: Type.String({ pattern: '^https?://', maxLength: LIMITS.urlChars }),
    runtimes: Type.Array(Type.String({ maxLength: 64 }), { maxItems: RUNTIMES_MAX }),
  },
  strict,
);
export type Runner = Static<typeof Runner>;

/**
 * `net-runners`: the compute nodes that programs are sent to, and whose word about runs counts. Signed by a scheduler that
 * the core node trusts; the latest one of a scheduler takes the place of its earlier ones.
 */
export const RunnersContent = Type.Object(
  {
    runners: Type.Array(Runner, { maxItems: RUNNERS_MAX }),
    decided_at_ms: UnixMs(),
  },
  strict,
);
export type RunnersContent = Static<typeof RunnersContent>;

/** The nodes that run programs by the latest word of each scheduler, each node once. Pure. */
export function foldRunners(
  lists: readonly { readonly sender: string; readonly content: RunnersContent }[],
): Runner[] {
  const latest = new Map<string, RunnersContent>();
  for (const { sender, content } of lists) {
    const known = latest.get(sender);
    if (!known || content.decided_at_ms > known.decided_at_ms) latest.set(sender, content);
  }
  const runners = new Map<string, Runner>();
  for (const list of latest.values()) for (const runner of list.runners) runners.set(runner.node_id, runner);
  return [...runners.values()];
}

export const ProgramRun = Type.Object(
  {
    run_id: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
    program_hash: Type.String({ pattern: ANY_HASH_PATTERN }),
    started_at_ms: UnixMs(),
    duration_ms: Type.Integer({ minimum: 0, maximum: DURATION_MS_MAX }),
    outcome: Type.Enum(['answered', 'failed', 'crashed', 'timed_out']),
    status: Type.Integer({ minimum: 100, maximum: 599, description: 'HTTP status of the answer' }),
    reason: Type.Union([Reason, Type.Null()], { description: 'why there was no answer' }),
  },
  strict,
);
export type ProgramRun = Static<typeof ProgramRun>;

/** `net-program-runs`: runs of programs that ended. Signed by the compute node that ran them. */
export const ProgramRunsContent = Type.Object(
  { runs: Type.Array(ProgramRun, { minItems: 1, maxItems: RUNS_MAX }) },
  strict,
);
export type ProgramRunsContent = Static<typeof ProgramRunsContent>;

export const parseRunnersContent = createParser(RunnersContent, 'content.content');
export const parseProgramRunsContent = createParser(ProgramRunsContent, 'content.content');
export const parseNodeContent = createParser(NodeContent, 'content.content');
export const parseCoreNodeContent = createParser(CoreNodeContent, 'content.content');
export const parseAllocationContent = createParser(AllocationContent, 'content.content');
export const parseInstanceStatusContent = createParser(InstanceStatusContent, 'content.content');

/** The 64-digit identifier of a node, a pure function of its key's address. */
export function nodeIdOf(address: string): string {
  return sha256Hex(`net-node\n${address.toLowerCase()}`);
}
