import { ensurePrograms } from './prerequisites.ts';
import { endAbandoned } from './runner/processes.ts';
import { ALL, chooseSoaks, describeSoaks, listSoaks } from './soak/choose.ts';
import { isWhole, readOptions, WHOLE_SECONDS } from './soak/options.ts';
import { runSoakFile } from './soak/run/file.ts';
import { runSoakHere } from './soak/run/here.ts';
import { type Runnable, runEach } from './soak/seen/run.ts';
import { readSeen, SEEN_FILE, tellOutcomes, writeSeen } from './soak/seen/seen.ts';
import { SOAKS } from './soak/soaks.ts';
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

const USAGE = `npm run soak                          what soaks there are, how long each takes, when it last passed
npm run soak -- NAME ... [OPTIONS]    runs these
npm run soak -- ${ALL}                   runs every one, for hours

What npm test does briefly, for longer. NAME is one of the list, the path of its file, or a part
of either, which stands for all that have it.

  --seconds N      how long each that can be told so runs (default ${WHOLE_SECONDS})
  --seed N         where it begins; a failure names its seed
  --seeds N        sim: so many seeds, however long they take
  --inputs N       flights, native-flights: so many inputs, however long they take
  --only TEXT      failover: breaks only what has this in its name, such as 'SIGSTOP of the primary'
  --asynchronous   failover: standbys may lack what was acknowledged
  --write          keeps in ${SEEN_FILE} which have passed as a whole, when and of which commit
  --json           the list as JSON
  -h, --help       this text`;
const { values, positionals } = parseCommand(USAGE, {
  options: {
    seconds: { type: 'string', default: String(WHOLE_SECONDS) },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    inputs: { type: 'string' },
    only: { type: 'string' },
    asynchronous: { type: 'boolean' },
    write: { type: 'boolean' },
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
  if (names.some((name) => SOAKS[name]!.load === undefined)) await ensurePrograms(SOAK_PROGRAMS);
  endAbandoned();
  const runnable = (name: string): Runnable => ({
    name,
    run: async () => {
      const soak = await SOAKS[name]!.load?.();
      if (soak === undefined) return runSoakFile(name);
      console.log(`${name}: ${options.seconds} s, seed ${options.seed}`);
      await runSoakHere(() => soak(options));
      return { isInPart: !isWhole(options) };
    },
  });
  const outcomes = await runEach(names.map(runnable), (outcome) => {
    if (values.write) writeSeen([outcome], Object.keys(SOAKS));
  });
  console.log(tellOutcomes(outcomes));
}

const { chosen, unknown } = chooseSoaks(positionals);
if (positionals.length === 0)
  console.log(
    values.json ? JSON.stringify(describeSoaks(readSeen()), null, 2) : `${listSoaks(readSeen())}\n\n${USAGE}`,
  );
else if (unknown.length > 0)
  refuse(`there is no soak ${unknown.join(', ')}: npm run soak lists what there is`);
else await runSoaks(chosen);
