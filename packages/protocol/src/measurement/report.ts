import { readItemHash } from '../hash.ts';

/**
 * Node metrics: what a monitor measured in one hour (specification, "Node metrics"). Published as a POST on
 * `net-scoring`; `net-network-metrics` is a second name of the same type (docs/decisions.md 11).
 */
export const METRICS_POST_TYPES = ['net-scoring-metrics', 'net-network-metrics'] as const;
export const SCORES_POST_TYPE = 'net-scoring-scores';
export const SCORING_CHANNEL = 'net-scoring';

export type NodeKind = 'core' | 'compute';

/** Where each kind stands in `metrics` and in `scores`. */
export const WIRE_KIND = { core: 'ccn', compute: 'crn' } as const satisfies Record<NodeKind, string>;

/** Numbers of a record. Latencies in seconds; a test that failed has none. */
export const RECORD_NUMBERS = {
  core: [
    'base_latency',
    'base_latency_ipv4',
    'metrics_latency',
    'aggregate_latency',
    'file_download_latency',
    'txs_total',
    'pending_messages',
    'eth_height_remaining',
  ],
  compute: [
    'base_latency',
    'base_latency_ipv4',
    'diagnostic_vm_latency',
    'full_check_latency',
    'diagnostic_vm_ping_latency',
  ],
} as const;
export type NumberField = (typeof RECORD_NUMBERS)[NodeKind][number];

/** One measurement of one node, as read: whatever has the wrong type is absent. */
export interface NodeRecord {
  /** 64 lower-case hexadecimal digits. */
  readonly nodeId: string;
  /** Unix seconds with fraction. */
  readonly measuredAt: number;
  readonly url: string | null;
  readonly asn: number | null;
  readonly asName: string | null;
  readonly version: string | null;
  readonly numbers: Readonly<Partial<Record<NumberField, number>>>;
  readonly features: readonly string[];
  readonly ipv4: string | null;
  /** Whether the node's key answered at that address. */
  readonly ipv4Proved: boolean;
  readonly ipv6: string | null;
  readonly ipv6Pool: string | null;
  /** Whether the node's key answered in that network. */
  readonly ipv6PoolProved: boolean;
  /** The node id that the node itself claims. */
  readonly configNodeHash: string | null;
}

export type MetricsReport = Readonly<Record<NodeKind, readonly NodeRecord[]>>;

export const REPORT_LIMITS = { recordsPerKind: 50_000, textChars: 512, features: 64 } as const;

const ASN_MAX = 0xffff_ffff;

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const own = (value: Json, key: string): unknown => (Object.hasOwn(value, key) ? value[key] : undefined);
const textOf = (value: unknown) =>
  typeof value === 'string' && value !== '' && value.length <= REPORT_LIMITS.textChars ? value : null;
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** A record, or undefined for one that names no node or no time. */
function parseRecord(raw: unknown, kind: NodeKind): NodeRecord | undefined {
  if (!isObject(raw)) return undefined;
  const [said, measuredAt, asn] = [own(raw, 'node_id'), own(raw, 'measured_at'), own(raw, 'asn')];
  const nodeId = typeof said === 'string' ? readItemHash(said) : undefined;
  if (nodeId === undefined) return undefined;
  if (!isNumber(measuredAt) || measuredAt < 0) return undefined;
  const numbers: Partial<Record<NumberField, number>> = {};
  for (const field of RECORD_NUMBERS[kind]) {
    const value = own(raw, field);
    if (isNumber(value) && value >= 0) numbers[field] = value;
  }
  const features = own(raw, 'features');
  const text = (field: string) => textOf(own(raw, field));
  return {
    nodeId,
    measuredAt,
    url: text('url'),
    asn: Number.isInteger(asn) && (asn as number) >= 0 && (asn as number) <= ASN_MAX ? (asn as number) : null,
    asName: text('as_name'),
    version: text('version'),
    numbers,
    features: Array.isArray(features)
      ? features.slice(0, REPORT_LIMITS.features).flatMap((one) => textOf(one) ?? [])
      : [],
    ipv4: text('ipv4'),
    ipv4Proved: own(raw, 'ipv4_proved') === true,
    ipv6: text('ipv6'),
    ipv6Pool: text('ipv6_pool'),
    ipv6PoolProved: own(raw, 'ipv6_pool_proved') === true,
    configNodeHash: text('config_node_hash'),
  };
}

function parseRecords(raw: unknown, kind: NodeKind): NodeRecord[] {
  if (!Array.isArray(raw)) return [];
  return raw.slice(0, REPORT_LIMITS.recordsPerKind).flatMap((one) => parseRecord(one, kind) ?? []);
}

/**
 * Reads `content.content` of a metrics POST. Never throws: the bytes are a stranger's, and what has not the form of a
 * record is no record. Negative and infinite numbers are absent.
 */
export function parseMetricsReport(content: unknown): MetricsReport {
  const metrics = isObject(content) ? own(content, 'metrics') : undefined;
  if (!isObject(metrics)) return { core: [], compute: [] };
  return {
    core: parseRecords(own(metrics, 'ccn'), 'core'),
    compute: parseRecords(own(metrics, 'crn'), 'compute'),
  };
}
