import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { ensurePrograms } from './prerequisites.ts';
import { ALL, chooseSoaks, describeSoaks, listSoaks } from './soak/choose.ts';
import { readOptions } from './soak/options.ts';
import { SOAKS } from './soak/soaks.ts';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

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

const USAGE = `npm run soak                          what soaks there are, and how long each takes
npm run soak -- NAME ... [OPTIONS]    runs these
npm run soak -- ${ALL}                   runs every one, for hours

What npm test does briefly, for longer. NAME is one of the list, the path of its file, or a part
of either, which stands for all that have it.

  --seconds N      how long each that can be told so runs (default 60)
  --seed N         where it begins; a failure names its seed
  --seeds N        sim: so many seeds, however long they take
  --inputs N       flights, native-flights: so many inputs, however long they take
  --only TEXT      failover: breaks only what has this in its name, such as 'SIGSTOP of the primary'
  --asynchronous   failover: standbys may lack what was acknowledged
  --json           the list as JSON
  -h, --help       this text`;
const { values, positionals } = parseCommand(USAGE, {
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    inputs: { type: 'string' },
    only: { type: 'string' },
    asynchronous: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  allowPositionals: true,
});

function refuse(why: string): void {
  console.error(why);
  process.exitCode = 2;
}

async function runSoaks(names: readonly string[]): Promise<void> {
  const options = readOptions(values);
  if (typeof options === 'string') return refuse(options);
  for (const name of names) {
    const soak = await SOAKS[name]!.load?.();
    if (soak === undefined) continue;
    console.log(`${name}: ${options.seconds} s, seed ${options.seed}`);
    await soak(options);
  }
  const files = names.filter((name) => SOAKS[name]!.load === undefined);
  if (files.length === 0) return;
  await ensurePrograms(SOAK_PROGRAMS);
  await runFiles(files);
}

const { chosen, unknown } = chooseSoaks(positionals);
if (positionals.length === 0)
  console.log(values.json ? JSON.stringify(describeSoaks(), null, 2) : `${listSoaks()}\n\n${USAGE}`);
else if (unknown.length > 0)
  refuse(`there is no soak ${unknown.join(', ')}: npm run soak lists what there is`);
else await runSoaks(chosen);
