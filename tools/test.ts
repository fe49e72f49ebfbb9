import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { createLogger } from '@skerry/kit';
import { startTestServer } from '../services/core/src/db/testing-server.ts';
import { checkSources } from './check.ts';
import { ensurePrograms } from './prerequisites.ts';
import { ROOT } from './source.ts';

/**
 * `npm test`: format, lint and types; then every test, quick ones side by side, end-to-end ones one after another.
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
  failed: number;
  skipped: string[];
}

function listTests(): { quick: string[]; endToEnd: string[] } {
  const all = globSync('{packages,services,apps,devnet,tools}/**/*.test.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/*.soak.test.ts'],
  })
    .filter((path) => positionals.length === 0 || positionals.some((pattern) => path.includes(pattern)))
    .sort();
  const isEndToEnd = (path: string) => path.endsWith('.e2e.test.ts');
  return {
    quick: all.filter((path) => !isEndToEnd(path)),
    endToEnd: values.quick ? [] : all.filter(isEndToEnd),
  };
}

async function runTests(
  files: readonly string[],
  concurrency: number,
  timeout: number,
  tally: Tally,
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
  stream.on('test:fail', ({ details }) => {
    if (details.type !== 'suite') tally.failed++;
  });
  const text = stream.compose(new spec());
  text.pipe(process.stdout, { end: false });
  await new Promise((resolve, reject) => text.once('end', resolve).once('error', reject));
}

/** Ends with this process. */
async function startSharedDatabase(): Promise<string> {
  const server = await startTestServer(createLogger('test-database', 'warn'));
  return server.url;
}

const startMs = performance.now();
const tally: Tally = { passed: 0, failed: 0, skipped: [] };
const { quick, endToEnd } = listTests();
await ensurePrograms();
if (positionals.length === 0) tally.failed += await checkSources();
// One database server for all files; each test makes a database of its own on it.
process.env.SKERRY_TEST_DATABASE_URL ||= await startSharedDatabase();
await runTests(quick, QUICK_CONCURRENCY, QUICK_TIMEOUT_MS, tally);
await runTests(endToEnd, 1, END_TO_END_TIMEOUT_MS, tally);

for (const what of tally.skipped) console.log(`NOT RUN HERE: ${what}`);
console.log(
  `\n${quick.length} quick and ${endToEnd.length} end-to-end files in ${Math.round((performance.now() - startMs) / 1000)} s`,
);
console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped.length} skipped`);
if (tally.failed > 0 || tally.passed === 0) process.exitCode = 1;
