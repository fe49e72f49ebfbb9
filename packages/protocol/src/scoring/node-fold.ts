import type { NodeKind, NodeRecord } from '../measurement/report.ts';
import { NetworkPlace } from './network-place.ts';
import { percentilesOf, QUALITY_PARTS, qualityOf, secondsOf, UNIT } from './quality.ts';
import type { ScoringSettings } from './settings.ts';
import { isVersionValid, type VersionTable } from './versions.ts';
import { totalOf, WEIGHT_UNIT, weightOf } from './weights.ts';

export type NodeStatus = 'active' | 'inactive' | 'dead';

/** What one hour was worth to a node, and why. */
export interface HourDetail {
  /** Unix seconds of the hour's beginning. */
  readonly hour: number;
  /** 1 is the node's newest hour. */
  readonly rank: number;
  /** How much the hour counts; all weights together are 1. */
  readonly weight: number;
  /** Each latency's percentile in seconds, or null where nobody could measure it. */
  readonly latencies: Readonly<Record<string, number | null>>;
  /** 0..1 */
  readonly quality: number;
  readonly version: string | null;
  readonly isVersionValid: boolean;
  /** The part of the weighted sum that the hour gave. */
  readonly gained: number;
  readonly records: number;
}

export interface FoldContext {
  readonly settings: ScoringSettings;
  readonly versions: VersionTable;
  /** Unix seconds: the end of the period. */
  readonly to: number;
  readonly onHour?: ((kind: NodeKind, nodeId: string, detail: HourDetail) => void) | undefined;
}

const DAY_SECONDS = 86_400;

/** Whether the record says anything of the node but that it did not answer. */
const saysAnything = ({ numbers, version, ipv4, ipv6, ipv6Pool, configNodeHash }: NodeRecord) =>
  [version, ipv4, ipv6, ipv6Pool, configNodeHash].some((one) => one !== null) ||
  Object.keys(numbers).length > 0;

const isAlive = (record: NodeRecord, hasValidVersion: boolean) =>
  hasValidVersion ||
  record.numbers.diagnostic_vm_ping_latency !== undefined ||
  record.numbers.diagnostic_vm_latency !== undefined ||
  record.configNodeHash === record.nodeId;

/** Everything that scoring remembers of one node: a few numbers, however many hours there are. Hours come newest first. */
export class NodeFold {
  readonly kind: NodeKind;
  readonly nodeId: string;
  /** Each system that the node was seen in; null where that was not known. */
  readonly asns = new Set<number | null>();
  readonly place = new NetworkPlace();
  /** The newest system that is known. */
  asn: number | null = null;
  hours = 0;
  isVerified = false;
  #sum = 0n;
  #status: NodeStatus | undefined;

  constructor(kind: NodeKind, nodeId: string) {
    this.kind = kind;
    this.nodeId = nodeId;
  }

  /** @param hour Unix seconds of the hour's beginning */
  addHour(hour: number, records: readonly NodeRecord[], context: FoldContext): void {
    const { settings, versions, onHour } = context;
    const { kind } = this;
    const software = settings.software[kind];
    const rank = ++this.hours;
    const validities = records.map(({ version, measuredAt }) =>
      isVersionValid(versions, software, version, Math.floor(measuredAt / DAY_SECONDS), settings.grace_days),
    );
    const isValid = validities.includes(true);
    const percentiles = percentilesOf(kind, records, settings.percentile);
    const quality = qualityOf(kind, percentiles);
    if (isValid) this.#sum += weightOf(rank) * BigInt(quality);
    this.#noteSystems(records, settings.only_answered === true);
    if (kind === 'compute') {
      this.place.add(records, hour >= context.to - settings.ip_window_seconds);
      this.isVerified ||= records.some(({ configNodeHash, nodeId }) => configNodeHash === nodeId);
      if (hour + settings.hour_seconds > context.to - settings.dead_window_seconds) {
        this.#noteLife(records.some((record, index) => isAlive(record, validities[index]!)));
        if (settings.proved_places) this.place.prove(records);
      }
    }
    if (!onHour) return;
    const weight = Number(weightOf(rank)) / Number(WEIGHT_UNIT);
    const valid = validities.indexOf(true);
    onHour(kind, this.nodeId, {
      hour,
      rank,
      weight,
      latencies: Object.fromEntries(
        QUALITY_PARTS[kind].map(({ field }, index) => {
          const percentile = percentiles[index]!;
          return [field, percentile === null ? null : secondsOf(percentile)];
        }),
      ),
      quality: quality / UNIT,
      version: records[Math.max(valid, 0)]!.version,
      isVersionValid: isValid,
      gained: isValid ? weight * (quality / UNIT) : 0,
      records: records.length,
    });
  }

  /** 0..UNIT */
  get total(): number {
    return totalOf(this.#sum);
  }

  get status(): NodeStatus {
    return this.#status ?? 'dead';
  }

  /** Of several records of one hour the least number counts, so that their order does not. */
  #noteSystems(records: readonly NodeRecord[], onlyAnswered: boolean): void {
    let least: number | null = null;
    for (const record of records) {
      const { asn } = record;
      if (onlyAnswered && asn === null && !saysAnything(record)) continue;
      this.asns.add(asn);
      if (asn !== null && (least === null || asn < least)) least = asn;
    }
    this.asn ??= least;
  }

  #noteLife(isProof: boolean): void {
    if (this.#status === undefined) this.#status = isProof ? 'active' : 'dead';
    else if (this.#status === 'dead' && isProof) this.#status = 'inactive';
  }
}
