import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { isAlive } from '../../runner/testing/alive.ts';
import { ROOT } from '../../source.ts';
import { assertEach, countsIn } from './counts.ts';

/** What a soak does, in a process of its own: the last of its words, and how it ended. */
function play(what: string): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', what], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, TEST_PIDS: '/dev/null' },
  });
  return { status, said: `${stdout}${stderr}` };
}
const file = (name: string) =>
  play(`import { runSoakFile } from './tools/soak/run/file.ts';
console.log(JSON.stringify(await runSoakFile('tools/runner/testing/${name}.ts')));`);
const HERE = `import { spawn } from 'node:child_process';
import { runSoakHere } from './tools/soak/run/here.ts';
`;

test('a file of long tests fails, too, where it ends before its tests, has none, or leaves a process behind', () => {
  const { status, said } = file('passes');
  assert.equal(status, 0, said);
  assert.match(said, /✔ passes/);
  assert.match(said, /\{"isInPart":false\}/);
  for (const [name, why] of Object.entries({
    exits: /ended before its tests had/,
    empty: /has no test/,
    leaves: /left 1 processes behind/,
  })) {
    const wrong = file(name);
    assert.equal(wrong.status, 1, `${name}: ${wrong.said}`);
    assert.match(wrong.said, why);
  }
});

const pidIn = (said: string) => Number(/started (\d+)/.exec(said)?.[1]);

test('a soak that passes and leaves a process behind fails, and the process is named and ended', () => {
  const { status, said } = play(`${HERE}await runSoakHere(async () => {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  child.unref();
  console.log('started', child.pid);
}, 200);`);
  assert.equal(status, 1);
  assert.match(said, /left 1 processes behind: sleep 1000/);
  assert.equal(isAlive(pidIn(said)), false);
});

test('a signal ends what a soak started, and then does what it does to everybody', async () => {
  const what = `${HERE}await runSoakHere(async () => {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  console.log('started', child.pid);
  await new Promise(() => {});
});`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', what], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = await awaitOutput(child, 'the soak', hear(child, ['stderr']));
  await endProcess(child, 'SIGTERM');
  assert.equal(child.signalCode, 'SIGTERM');
  assert.equal(isAlive(pidIn(said)), false);
});

test('a soak that met none of what it is about has shown nothing of it', () => {
  const said = '30 hellos: need_more 12, not_tls 0, server_name 18';
  assert.deepEqual(countsIn(said), { need_more: 12, not_tls: 0, server_name: 18 });
  assert.throws(() => assertEach(countsIn(said)), /there was none of these[\s\S]*not_tls/);
  assert.throws(() => assertEach({ reached: Number.NaN }), /reached/);
  assert.throws(() => assertEach(countsIn('nothing that counts')), /nothing was counted/);
  assertEach({ reached: 1 });
});
