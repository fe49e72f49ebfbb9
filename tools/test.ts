import { globSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { createLogger } from '@skerry/kit';
import { startTestServer } from '../services/core/src/db/testing-server.ts';
import { checkSources } from './check.ts';
import { ensurePrograms } from './prerequisites.ts';
import { ROOT } from './source.ts';

/**
 * `npm test`: format, lint and types; then every test: quick ones side by side, then end-to-end ones in two lanes, each one
 * after another. Those that boot machines (`*.vm.e2e.test.ts`) have a lane of their own, since an emulated one keeps one core
 * busy and the other idle.
 * `npm test -- --quick` leaves the end-to-end ones out; `npm test -- PATTERN ...` runs the files whose path holds a pattern.
 */
const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true,
});

const QUICK_TIMEOUT_MS = 120_000;
const END_TO_END_TIMEOUT_MS = 900_000;
const QUICK_CONCURRENCY = 2;

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
  const all = globSync('{packages,services,apps,devnet,tools}/**/*.test.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/*.soak.test.ts'],
  })
    .filter((path) => positionals.length === 0 || positionals.some((pattern) => path.includes(pattern)))
    .sort();
  const isEndToEnd = (path: string) => path.endsWith('.e2e.test.ts');
  const isMachine = (path: string) => /[./]vm\.e2e\.test\.ts$/.test(path);
  return {
    quick: all.filter((path) => !isEndToEnd(path)),
    endToEnd: values.quick ? [] : all.filter((path) => isEndToEnd(path) && !isMachine(path)),
    machines: values.quick ? [] : all.filter(isMachine),
  };
}

async function runTests(
  files: readonly string[],
  concurrency: number,
  timeout: number,
  tally: Tally,
  output: NodeJS.WritableStream,
): Promise<void> {
  if (files.length === 0) return;
  const stream = run({
    files: files.map((path) => `${ROOT}${path}`),
    concurrency,
    timeout,
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  stream.on('test:pass', ({ name, details, skip, todo }) => {
    if (details.type === 'suite') return;
    if (skip !== undefined || todo !== undefined)
      tally.skipped.push(`${name}${typeof skip === 'string' ? `: ${skip}` : ''}`);
    else tally.passed++;
  });
  stream.on('test:fail', ({ name, file, details }) => {
    if (details.type !== 'suite') tally.failed.push(`${name} (${file?.replace(ROOT, '') ?? '?'})`);
  });
  const text = stream.compose(new spec());
  text.pipe(output, { end: false });
  await new Promise((resolve, reject) => text.once('end', resolve).once('error', reject));
}

/** Ends with this process. */
async function startSharedDatabase(): Promise<string> {
  const server = await startTestServer(createLogger('test-database', 'warn'));
  return server.url;
}

const startMs = performance.now();
const tally: Tally = { passed: 0, failed: [], skipped: [] };
const { quick, endToEnd, machines } = listTests();
await ensurePrograms();
if (positionals.length === 0) tally.failed.push(...(await checkSources()));
// One database server for all files; each test makes a database of its own on it.
process.env.SKERRY_TEST_DATABASE_URL ||= await startSharedDatabase();
await runTests(quick, QUICK_CONCURRENCY, QUICK_TIMEOUT_MS, tally, process.stdout);
// Two reports at once would be one mess: the second is printed behind the first.
const second = new PassThrough();
const secondText = buffer(second);
await Promise.all([
  runTests(machines, 1, END_TO_END_TIMEOUT_MS, tally, process.stdout),
  runTests(endToEnd, 1, END_TO_END_TIMEOUT_MS, tally, second).finally(() => second.end()),
]);
process.stdout.write(await secondText);

for (const what of tally.skipped) console.log(`NOT RUN HERE: ${what}`);
for (const what of tally.failed) console.log(`FAILED: ${what}`);
console.log(
  `\n${quick.length} quick and ${endToEnd.length + machines.length} end-to-end files in ${Math.round((performance.now() - startMs) / 1000)} s`,
);
console.log(`${tally.passed} passed, ${tally.failed.length} failed, ${tally.skipped.length} skipped`);
if (tally.failed.length > 0 || tally.passed === 0) process.exitCode = 1;
