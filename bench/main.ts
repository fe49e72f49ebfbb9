import { constants } from 'node:os';
import { benchCompute } from './compute/compute.ts';
import { benchGateway } from './gateway/gateway.ts';
import { benchIndexer } from './indexer/indexer.ts';
import { listProcessesBelow } from './measure/processor-time.ts';
import { benchIngest } from './messages/ingest.ts';
import { benchVerify } from './messages/verify.ts';
import { benchMetrics } from './metrics.ts';
import { benchQuery } from './query/query.ts';
import { benchSchedule } from './schedule.ts';
import { benchScore } from './score.ts';
import { benchStart } from './start.ts';
import { benchStorage } from './storage/storage.ts';
import { benchSync } from './sync/sync.ts';
import { benchVrf } from './vrf.ts';
import { benchWebhooks } from './webhooks/webhooks.ts';

/** `npm run bench -- NAME`: figures as ratios to a peer or a limit that is measured in the same run. */
const BENCHES: Readonly<Record<string, () => Promise<void>>> = {
  compute: benchCompute,
  gateway: benchGateway,
  indexer: benchIndexer,
  ingest: benchIngest,
  storage: benchStorage,
  metrics: benchMetrics,
  query: benchQuery,
  schedule: benchSchedule,
  score: benchScore,
  start: benchStart,
  sync: benchSync,
  verify: benchVerify,
  vrf: benchVrf,
  webhooks: benchWebhooks,
};

/** Databases, chains and servers of a bench have process groups of their own: who ends the bench ends them, too. */
function endAll(signal: NodeJS.Signals): void {
  for (const pid of listProcessesBelow([process.pid])) {
    if (pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
  process.exit(128 + constants.signals[signal]);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, endAll);

const name = process.argv[2] ?? '';
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
if (bench) await bench();
else {
  console.error(`npm run bench -- NAME, where NAME is one of: ${Object.keys(BENCHES).join(', ')}`);
  process.exitCode = 2;
}
