import { DEFAULT_SCORING_SETTINGS, type MetricsReport, type NodeRecord, Scorer } from '@skerry/protocol';
import { type Figures, tell } from './measure/figures.ts';

const NODES = 1_000;
const HOURS = 8_760;
const HOUR = 3_600;
const TO = 1_780_272_000;
const MIB = 1024 ** 2;
/** Differing hours that are made beforehand: making records is not what is measured. */
const PATTERNS = 24;

/** A generator of the Park-Miller kind: the same hours in every run. */
function createRandom(seed: number) {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function makeReport(random: () => number): MetricsReport {
  const record = (index: number): NodeRecord => ({
    nodeId: index.toString(16).padStart(64, '0'),
    measuredAt: TO - HOUR,
    url: null,
    asn: 64_512 + (index % 100),
    asName: null,
    version: '1.0.0',
    numbers: {
      base_latency: random() * 0.5,
      diagnostic_vm_latency: random(),
      full_check_latency: random() * 3,
      metrics_latency: random() * 0.5,
      aggregate_latency: random(),
      file_download_latency: random() * 0.5,
    },
    features: [],
    ipv4: `192.0.2.${index % 256}`,
    ipv4Proved: true,
    ipv6: null,
    ipv6Pool: null,
    ipv6PoolProved: false,
    configNodeHash: null,
  });
  const half = NODES / 2;
  return {
    core: Array.from({ length: half }, (_, index) => record(index)),
    compute: Array.from({ length: half }, (_, index) => record(half + index)),
  };
}

/** A year of 1,000 nodes in one pass: hours x nodes a second, and the memory at the beginning and at the end. */
export async function benchScore(figures: Figures): Promise<void> {
  const random = createRandom(42);
  const reports = Array.from({ length: PATTERNS }, () => makeReport(random));
  const released = { '1.0.0': { released_on: '2020-01-01' } };
  const scorer = new Scorer({
    settings: DEFAULT_SCORING_SETTINGS,
    versions: { 'skerry-core': released, 'skerry-compute': released },
    period: { from: TO - (HOURS + 1) * HOUR, to: TO },
  });
  const resident: number[] = [];
  const begunMs = performance.now();
  const before = process.cpuUsage();
  for (let hour = 1; hour <= HOURS; hour++) {
    const itemHash = hour.toString(16).padStart(64, '0');
    scorer.add({ itemHash, time: TO - hour * HOUR, report: reports[hour % PATTERNS]! });
    if (hour % (HOURS / 4) === 0) resident.push(process.memoryUsage().rss / MIB);
  }
  const { scores } = scorer.finish(new Map());
  const seconds = (performance.now() - begunMs) / 1000;
  const { user, system } = process.cpuUsage(before);
  const cpuSeconds = (user + system) / 1e6;
  figures.group(`scoring ${HOURS} hours of ${NODES} nodes in one pass`);
  figures.add('time', 's', seconds);
  figures.add('CPU time', 's', cpuSeconds);
  figures.add('hours of one node, per second of CPU time', '/s', (HOURS * NODES) / cpuSeconds);
  figures.add('resident memory at each quarter', 'MiB', resident);
  figures.add('resident memory, the last quarter to the first', '', resident.at(-1)! / resident[0]!);
  tell(`scored: ${scores.ccn.length} core nodes, ${scores.crn.length} compute nodes`);
}
