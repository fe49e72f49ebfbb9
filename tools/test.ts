import { existsSync, globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createLogger } from '@skerry/kit';
import { startTestServer } from '../services/core/src/db/testing-server.ts';
import { checkSources } from './check.ts';
import { ensurePrograms } from './prerequisites.ts';
import { runFile } from './runner/file.ts';
import {
  busyFactor,
  END_TO_END_LIMIT_MS,
  IDLE_LIMIT_MS,
  QUICK_LIMIT_MS,
  RUN_LIMIT_MS,
} from './runner/limits.ts';
import { ProcessTree } from './runner/processes.ts';
import { ROOT } from './source.ts';

/**
 * `npm test`: format, lint and types; then every test: quick ones side by side, then end-to-end ones in two lanes, each one
 * after another. Those that boot machines (`*.vm.e2e.test.ts`) have a lane of their own, since an emulated one keeps one core
 * busy and the other idle.
 * `npm test -- --quick` leaves the end-to-end ones out; `npm test -- PATTERN ...` runs the files whose path holds a pattern, or
 * the file that it names. Whatever a file does, the run ends: each file has a limit, and so has the whole
 * (`--file-limit`, `--idle-limit` and `--run-limit`, in seconds).
 */
const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    'file-limit': { type: 'string' },
    'idle-limit': { type: 'string' },
    'run-limit': { type: 'string' },
  },
  allowPositionals: true,
});

const QUICK_CONCURRENCY = 2;
/** Ending everything may take this long at most. */
const END_LIMIT_MS = 30_000;

const secondsOf = (value: string | undefined) => (value === undefined ? undefined : Number(value) * 1000);
const fileLimitMs = secondsOf(values['file-limit']);
const idleLimitMs = secondsOf(values['idle-limit']);
const runLimitMs = secondsOf(values['run-limit']) ?? RUN_LIMIT_MS;

interface Tally {
  passed: number;
  /** A line each. */
  failed: string[];
  skipped: string[];
}

interface Files {
  readonly quick: string[];
  readonly endToEnd: string[];
  readonly machines: string[];
}

function listTests(): Files {
  const named = positionals.filter((path) => path.endsWith('.ts') && existsSync(`${ROOT}${path}`));
  const patterns = positionals.filter((path) => !named.includes(path));
  const found = globSync('{packages,services,apps,devnet,tools}/**/*.test.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/*.soak.test.ts'],
  }).filter((path) => positionals.length === 0 || patterns.some((pattern) => path.includes(pattern)));
  const all = [...new Set([...named, ...found])].sort();
  const isEndToEnd = (path: string) => path.endsWith('.e2e.test.ts');
  const isMachine = (path: string) => /[./]vm\.e2e\.test\.ts$/.test(path);
  return {
    quick: all.filter((path) => !isEndToEnd(path)),
    endToEnd: values.quick ? [] : all.filter((path) => isEndToEnd(path) && !isMachine(path)),
    machines: values.quick ? [] : all.filter(isMachine),
  };
}

const startMs = performance.now();
const tally: Tally = { passed: 0, failed: [], skipped: [] };
/** What runs now. */
const running = new Set<string>();
const stop = new AbortController();

/** Takes files from a queue, which others may do as well, so many at once; what one prints is shown when it has ended. */
async function runTests(queue: string[], concurrency: number, limitMs: number): Promise<void> {
  const work = async (): Promise<void> => {
    for (let path = queue.shift(); path !== undefined && !stop.signal.aborted; path = queue.shift()) {
      running.add(path);
      const outcome = await runFile({
        path,
        limitMs: () => fileLimitMs ?? limitMs * busyFactor(),
        idleLimitMs: () => idleLimitMs ?? IDLE_LIMIT_MS * busyFactor(),
        signal: stop.signal,
      });
      running.delete(path);
      tally.passed += outcome.passed;
      tally.failed.push(...outcome.failed);
      tally.skipped.push(...outcome.skipped);
      console.log(`\n${path} (${(outcome.elapsedMs / 1000).toFixed(1)} s)\n${outcome.output.trimEnd()}`);
    }
    tally.failed.push(...queue.splice(0).map((path) => `${path} was not run`));
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/** Ends with this process. */
async function startSharedDatabase(): Promise<string> {
  const server = await startTestServer(createLogger('test-database', 'warn'));
  return server.url;
}

function finish(): never {
  for (const what of tally.skipped) console.log(`NOT RUN HERE: ${what}`);
  for (const what of tally.failed) console.log(`FAILED: ${what}`);
  console.log(
    `\n${quick.length} quick and ${endToEnd.length + machines.length} end-to-end files in ${Math.round((performance.now() - startMs) / 1000)} s`,
  );
  console.log(`${tally.passed} passed, ${tally.failed.length} failed, ${tally.skipped.length} skipped`);
  process.exit(tally.failed.length > 0 || tally.passed === 0 ? 1 : 0);
}

/** Files that run are ended and tell what they were doing; whatever then still runs is ended without a word. */
function endRun(why: string): void {
  if (stop.signal.aborted) return;
  const what = running.size > 0 ? [...running].join(', ') : 'no test file';
  console.log(`\nThe run ${why}; running: ${what}`);
  tally.failed.push(`the run ${why}; running: ${what}`);
  stop.abort(`was ended, since the run ${why}`);
  const end = (): void => {
    new ProcessTree(process.pid).kill();
    finish();
  };
  if (running.size === 0) end();
  else setTimeout(end, END_LIMIT_MS);
}

const { quick, endToEnd, machines } = listTests();
function watchRun(): void {
  const leftMs = runLimitMs * (values['run-limit'] === undefined ? busyFactor() : 1) - performance.now();
  if (leftMs <= 0) endRun(`took longer than ${Math.round(performance.now() / 60_000)} minutes`);
  else setTimeout(watchRun, leftMs).unref();
}
watchRun();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => endRun(`was ended by ${signal}`));
process.once('disconnect', () => endRun('lost whoever started it'));

await ensurePrograms();
if (positionals.length === 0) tally.failed.push(...(await checkSources()));
// One database server for all files; each test makes a database of its own on it.
process.env.SKERRY_TEST_DATABASE_URL ||= await startSharedDatabase();
await runTests([...quick], QUICK_CONCURRENCY, QUICK_LIMIT_MS);
const others = [...endToEnd];
const lane = (queue: string[]) => runTests(queue, 1, END_TO_END_LIMIT_MS);
// Whoever is done with the machines helps with the others.
await Promise.all([lane([...machines]).then(() => lane(others)), lane(others)]);
finish();
