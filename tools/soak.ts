import { globSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { ensurePrograms } from './prerequisites.ts';
import { soakBatches, soakSanitizedBatches } from './soak/batches.ts';
import { chooseSoaks } from './soak/choose.ts';
import { soakConsole } from './soak/console.ts';
import { soakFailover } from './soak/failover.ts';
import { soakFlights } from './soak/flights.ts';
import { soakNativeFlights } from './soak/flights-native.ts';
import { soakHellos } from './soak/hellos.ts';
import { soakNativeHellos } from './soak/hellos-native.ts';
import { soakHttpHeads } from './soak/http-heads.ts';
import type { SoakOptions } from './soak/options.ts';
import { soakPlane } from './soak/plane.ts';
import { soakSim } from './soak/sim.ts';
import { soakSockets } from './soak/sockets.ts';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

/** What tests do briefly, for as long as wanted. */
const FUZZERS: Readonly<Record<string, (options: SoakOptions) => Promise<void>>> = {
  batches: soakBatches,
  'sanitized-batches': soakSanitizedBatches,
  console: soakConsole,
  failover: soakFailover,
  flights: soakFlights,
  'native-flights': soakNativeFlights,
  hellos: soakHellos,
  'native-hellos': soakNativeHellos,
  'http-heads': soakHttpHeads,
  plane: soakPlane,
  sim: soakSim,
  sockets: soakSockets,
};
/** Of long tests only, and the Debian packages they come in. */
const SOAK_PROGRAMS = {
  caddy: 'caddy',
  chromium: 'chromium',
  'dpkg-scanpackages': 'dpkg-dev',
  gtlsclient: 'ngtcp2-client',
  gtlsserver: 'ngtcp2-server',
  lintian: 'lintian',
  pebble: 'pebble',
};
const SOAK_TIMEOUT_MS = 7_200_000;

/** Long tests, `*.soak.test.ts`, one file after another. */
async function runFiles(files: readonly string[]): Promise<void> {
  const stream = run({
    files: files.map((path) => `${ROOT}${path}`),
    concurrency: 1,
    timeout: SOAK_TIMEOUT_MS,
  });
  stream.on('test:fail', () => {
    process.exitCode = 1;
  });
  const report = stream.compose(new spec());
  report.pipe(process.stdout);
  await finished(report);
}

const list = (names: readonly string[]) => names.map((name) => `  ${name}`).join('\n');
const allFiles = globSync('{packages,services,apps,devnet,tools}/**/*.soak.test.ts', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
}).sort();
const USAGE = `npm run soak [-- [NAME ...] [--seconds N] [--seed N] [--seeds N] [--inputs N] [--only TEXT] [--asynchronous]]

What npm test does briefly, for as long as wanted. NAME is one of these, a file's name up to the
first dot, or a part of either, which stands for all that have it; without one, all run.

${list([...Object.keys(FUZZERS), ...allFiles])}

  --seconds N   how long each of the first kind runs (default 60)
  --seed N      where it begins; a failure names its seed
  --seeds N     sim: so many seeds, however long they take
  --inputs N    flights, native-flights: so many inputs, however long they take
  --only TEXT   failover: breaks only what has this in its name, such as 'SIGSTOP of the primary'
  --asynchronous   failover: standbys may lack what was acknowledged
  -h, --help    this text`;
const { values, positionals } = parseCommand(USAGE, {
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    inputs: { type: 'string' },
    only: { type: 'string' },
    asynchronous: { type: 'boolean' },
  },
  allowPositionals: true,
});
const options = {
  seconds: Number(values.seconds),
  seed: Number(values.seed ?? Date.now() % 2 ** 31),
  seeds: values.seeds === undefined ? undefined : Number(values.seeds),
  inputs: values.inputs === undefined ? undefined : Number(values.inputs),
  only: values.only,
  isAsynchronous: values.asynchronous,
};
const { fuzzers, files } = chooseSoaks(positionals, Object.keys(FUZZERS), allFiles);

if (fuzzers.length + files.length === 0 || !(options.seconds > 0)) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  for (const name of fuzzers) {
    console.log(`${name}: ${options.seconds} s, seed ${options.seed}`);
    await FUZZERS[name]!(options);
  }
  if (files.length > 0) {
    await ensurePrograms(SOAK_PROGRAMS);
    await runFiles(files);
  }
}
