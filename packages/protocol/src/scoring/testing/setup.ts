import type { NodeKind, NodeRecord, NumberField } from '../../measurement/report.ts';
import type { MetricsMessage } from '../scorer.ts';

/** What the tests of scoring are made of. */
export const HOUR = 3_600;
export const DAY = 86_400;
/** 2026-06-01T00:00:00Z */
export const TO = 1_780_272_000;
export const VERSIONS = {
  'skerry-core': { '1.0.0': { released_on: '2020-01-01' } },
  'skerry-compute': { '1.0.0': { released_on: '2020-01-01', replaced_on: null } },
};

export const idOf = (number: number) => number.toString(16).padStart(64, '0');

export const recordOf = (own: Partial<NodeRecord> & { numbers: NodeRecord['numbers'] }): NodeRecord => ({
  nodeId: idOf(1),
  measuredAt: TO - HOUR,
  url: null,
  asn: 64_512,
  asName: null,
  version: '1.0.0',
  features: [],
  ipv4: null,
  ipv4Proved: false,
  ipv6: null,
  ipv6Pool: null,
  ipv6PoolProved: false,
  configNodeHash: null,
  ...own,
});

export const messageOf = (
  hash: number,
  time: number,
  records: Partial<Record<NodeKind, NodeRecord[]>>,
): MetricsMessage => ({ itemHash: idOf(hash), time, report: { core: [], compute: [], ...records } });

export const PERFECT_COMPUTE: Partial<Record<NumberField, number>> = {
  base_latency: 0,
  diagnostic_vm_latency: 0,
  full_check_latency: 0,
};

/** One message an hour, the last hour before TO first, each with what `records` makes of its hour's number. */
export const hourly = (
  count: number,
  records: (index: number, time: number) => Partial<Record<NodeKind, NodeRecord[]>>,
): MetricsMessage[] =>
  Array.from({ length: count }, (_, index) => {
    const time = TO - (index + 1) * HOUR + 60;
    return messageOf(index + 1, time, records(index, time));
  });
