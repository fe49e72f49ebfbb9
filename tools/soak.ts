import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { ROOT } from './source.ts';

/** `npm run soak`: what takes too long for `npm test`, one file after another. Arguments narrow it down, as there. */
const SOAK_TIMEOUT_MS = 7_200_000;
const patterns = process.argv.slice(2);

const files = globSync('{packages,services,apps,devnet}/**/*.soak.test.ts', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
})
  .filter((path) => patterns.length === 0 || patterns.some((pattern) => path.includes(pattern)))
  .sort();

const stream = run({
  files: files.map((path) => `${ROOT}${path}`),
  concurrency: 1,
  timeout: SOAK_TIMEOUT_MS,
});
stream.on('test:fail', () => {
  process.exitCode = 1;
});
stream.compose(new spec()).pipe(process.stdout);
