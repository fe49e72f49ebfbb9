import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from '../source.ts';
import { chooseSoaks, describeSoaks, listSoaks, wordOf } from './choose.ts';
import { isWhole, readOptions } from './options.ts';
import { SOAKS } from './soaks.ts';

const HTTP3 = 'services/gateway/src/http3.soak.test.ts';
const BULK = 'services/gateway/src/http3-bulk.soak.test.ts';
const UPGRADE = 'apps/cli/src/upgrade.soak.test.ts';
const SIM = 'services/core/src/sim/sim.soak.test.ts';
const KILLS = ['services/core/src/node/crash.soak.test.ts', 'packages/indexer/src/crash.soak.test.ts'];
const ALL = ['flights', 'native-flights', 'plane', 'sim', HTTP3, BULK, UPGRADE, SIM, ...KILLS];
const choose = (...words: string[]) => chooseSoaks(words, ALL);

const soak = (...args: string[]) =>
  spawnSync(process.execPath, ['tools/soak.ts', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });

test('a whole name stands for itself alone, a part for all that have it', () => {
  assert.deepEqual(choose('http3').chosen, [HTTP3]);
  assert.deepEqual(choose('http3-bulk').chosen, [BULK]);
  assert.deepEqual(choose('flights').chosen, ['flights']);
  assert.deepEqual(choose('flight').chosen, ['flights', 'native-flights']);
  assert.deepEqual(choose('services/gateway').chosen, [HTTP3, BULK]);
  assert.deepEqual(choose('plane', 'upgrade').chosen, ['plane', UPGRADE]);
  assert.deepEqual(choose('crash').chosen, KILLS);
});

test('one that runs as long as it is told is not run with the file of its name', () => {
  assert.deepEqual(choose('sim').chosen, ['sim']);
  assert.deepEqual(choose('sim.soak').chosen, [SIM]);
});

test('no word chooses nothing, all chooses every one, and a word that chooses nothing is named', () => {
  assert.deepEqual(choose(), { chosen: [], unknown: [] });
  assert.deepEqual(choose('all').chosen, ALL);
  assert.deepEqual(choose('plane', 'nothing'), { chosen: ['plane'], unknown: ['nothing'] });
});

test('each has a short word that chooses it alone', () => {
  assert.deepEqual(
    ALL.map((name) => wordOf(name, ALL)),
    [
      ...['flights', 'native-flights', 'plane', 'sim'],
      ...['http3', 'http3-bulk', 'upgrade', 'sim/sim', 'node/crash', 'src/crash'],
    ],
  );
});

test('every file of long tests has its place in the list, and every place its file', () => {
  const files = globSync('{packages,services,apps,devnet,tools}/**/*.soak.test.ts', {
    cwd: ROOT,
    exclude: ['**/node_modules/**'],
  });
  const listed = Object.entries(SOAKS).flatMap(([name, { load }]) => (load === undefined ? [name] : []));
  assert.deepEqual(listed, files.sort());
});

test('options are numbers, and what is wrong with one is said', () => {
  assert.deepEqual(readOptions({ seconds: '0.5', seed: '7' }), {
    ...{ seconds: 0.5, seed: 7, seeds: undefined, inputs: undefined },
    ...{ only: undefined, isAsynchronous: undefined },
  });
  assert.equal(readOptions({ seconds: 'long' }), '--seconds takes a number above 0, not long');
  assert.equal(readOptions({ seconds: '1', seeds: 'many' }), '--seeds takes a whole number, not many');
});

test('a soak that was told to be shorter than the list says, or to do one part, is none that was seen whole', () => {
  const whole = { seconds: 60, seed: 1 };
  assert.deepEqual([isWhole(whole), isWhole({ ...whole, seconds: 600 })], [true, true]);
  const less = [
    ...[{ seconds: 2 }, { seeds: 1 }, { inputs: 1 }, { only: 'SIGSTOP of the primary' }],
    { isAsynchronous: true },
  ];
  assert.ok(less.every((told) => !isWhole({ ...whole, ...told })));
});

test('without a name the command lists what there is, with what it shows, its time and its last pass, and runs nothing', () => {
  const { status, stdout, stderr } = soak();
  assert.equal(status, 0, stderr);
  for (const [name, { shows, minutes }] of Object.entries(SOAKS))
    assert.ok(stdout.includes(`  ${wordOf(name)}: ${shows} (${minutes} min; `), name);
});

test('the list tells the last pass that was kept, also to programs', () => {
  const passed = { date: '2026-11-30', commit: '0123456789', seconds: 61 };
  const seen = { plane: passed };
  assert.match(listSoaks(seen), /^ {2}plane: .* \(1 min; passed 2026-11-30 of 0123456789\)$/m);
  assert.match(listSoaks(seen), /^ {2}hellos: .* \(1 min; no pass is kept\)$/m);
  const described = new Map(describeSoaks(seen).map((one) => [one.name, one.passed]));
  assert.deepEqual([described.get('plane'), described.get('hellos')], [passed, null]);
});

test('a name that there is not is refused, also beside one that there is', () => {
  const { status, stdout, stderr } = soak('http-heads', 'nothing');
  assert.deepEqual([status, stdout], [2, '']);
  assert.equal(stderr, 'there is no soak nothing: npm run soak lists what there is\n');
});
