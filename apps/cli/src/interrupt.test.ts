import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

/** A process that does this, until it says that it is ready and gets a signal. */
async function interrupted(script: string, signal: NodeJS.Signals) {
  const source = `
    import { whenEnded } from ${JSON.stringify(new URL('./interrupt.ts', import.meta.url))};
    import { afterAccepted } from ${JSON.stringify(new URL('./messages/accepted.ts', import.meta.url))};
    import { createOutput } from ${JSON.stringify(new URL('./output/output.ts', import.meta.url))};
    const output = (json) => createOutput(process.stdout, process.stderr, { json, colours: false });
    ${script}
    process.stdout.write('ready');
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.once('data', () => child.kill(signal));
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { err, code };
}

test('what is left behind is removed before a command ends by a signal, also where that takes a moment', async () => {
  const script = `
    const first = whenEnded(async () => { await null; process.stderr.write('one '); });
    const over = whenEnded(() => process.stderr.write('never '));
    whenEnded(() => new Promise((resolve) => setImmediate(() => { process.stderr.write('two'); resolve(); })));
    whenEnded(() => Promise.reject(new Error('failed')));
    over[Symbol.dispose]();
  `;
  assert.deepEqual(await interrupted(script, 'SIGINT'), { err: 'one two', code: 130 });
  assert.deepEqual(await interrupted(script, 'SIGTERM'), { err: 'one two', code: 143 });
});

test('Ctrl-C says what becomes of whatever was accepted, to programs with its whole id', async () => {
  const id = 'a'.repeat(64);
  const told = JSON.stringify({ what: 'it was created', ids: { instance_id: id }, hint: 'look' });
  const people = await interrupted(
    `void afterAccepted(output(false), ${told}, () => new Promise(() => {}));`,
    'SIGINT',
  );
  assert.deepEqual(people, {
    err: '\nit was created, and nobody waits for it any more\nhint: look\n',
    code: 130,
  });
  const { err, code } = await interrupted(
    `void afterAccepted(output(true), ${told}, () => new Promise(() => {}));`,
    'SIGINT',
  );
  assert.equal(code, 130);
  assert.deepEqual(JSON.parse(err), {
    error: 'it was created, and nobody waits for it any more',
    ...{ status: 'error', code: 'INTERRUPTED', hint: 'look' },
    details: { instance_id: id, hint: 'look' },
  });
});
