import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { until } from '@skerry/kit/testing/until';
import { findFreePorts } from '../testing/ports.ts';
import { findProcesses, killAll } from '../testing/processes.ts';
import { SKERRY } from '../testing/shell.ts';

const CACHE = join(import.meta.dirname, '../../../../node_modules/.cache/skerry');

/** A gateway's settings in a file, and `skerry gateway ...` with them. */
async function open(t: TestContext) {
  const home = await mkdtemp(join(tmpdir(), 'skerry-replace-'));
  const [http, https, api, core] = await findFreePorts(4);
  const file = join(home, 'gateway.env');
  const lines = {
    SKERRY_GATEWAY_HOST: '127.0.0.1',
    SKERRY_GATEWAY_HTTP_PORT: http,
    SKERRY_GATEWAY_HTTPS_PORT: https,
    SKERRY_GATEWAY_API_PORT: api,
    // Nobody is there: a gateway serves what it knows.
    SKERRY_GATEWAY_CORE_URL: `http://127.0.0.1:${core}`,
    SKERRY_GATEWAY_CACHE_DIR: CACHE,
  };
  t.after(async () => {
    killAll(findProcesses(new RegExp(`skerry.js gateway.*${home}`)));
    await rm(home, { recursive: true, force: true });
  });
  return {
    http: `http://127.0.0.1:${http}`,
    write: (more: object = {}) =>
      writeFile(
        file,
        Object.entries({ ...lines, ...more }).map(([name, value]) => `${name}=${value}\n`),
      ),
    /** The settings come last: processes are found by them. */
    start: (...args: string[]) =>
      spawn(process.execPath, [SKERRY, 'gateway', ...args, '--json', '--settings', file], {
        env: { ...bareEnvironment(), SKERRY_HOME: home, SKERRY_LOG_LEVEL: 'error' },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      }),
    answers: async () => (await fetch(`http://127.0.0.1:${api}/api/status`)).status,
  };
}

/** Not its output: a successor has that, too. */
const end = async (child: ChildProcess) => (await once(child, 'exit'))[0] as number | null;

/** What a process says, for as long as it is looked at. */
function listenTo({ stdout, stderr }: ChildProcess): () => string {
  let said = '';
  for (const stream of [stdout!, stderr!])
    stream.setEncoding('utf8').on('data', (part: string) => {
      said += part;
    });
  return () => said;
}

test('skerry gateway replace ends when the new gateway serves, and fails where it does not, while the old one serves on', async (t) => {
  const { write, start, answers } = await open(t);
  await write();
  const first = start();
  listenTo(first);
  const firstEnds = end(first);
  await Promise.race([once(first, 'message'), firstEnds.then((code) => assert.fail(`it ended: ${code}`))]);

  await write({ SKERRY_GATEWAY_SYNC_INTERVAL_MS: 'soon' });
  const wrong = start('replace');
  const complaint = listenTo(wrong);
  assert.equal(await end(wrong), 1);
  await until('the reason', complaint, (said) => /SKERRY_GATEWAY_SYNC_INTERVAL_MS/.test(said));
  await until('what follows', complaint, (said) =>
    /ended before it served.*goes on.*DAEMON_FAILED/.test(said),
  );
  assert.equal(await answers(), 200);
  assert.equal(first.exitCode, null);

  await write();
  const right = start('replace');
  const report = listenTo(right);
  assert.equal(await end(right), 0, report());
  // What it said may come after its end.
  const said = await until('its report', report, (text) => text.endsWith('\n'));
  const { pid } = JSON.parse(said) as { pid: number };
  assert.equal(await firstEnds, 0);
  assert.equal(await answers(), 200);
  // It is nobody's child, and ends as it is told.
  process.kill(pid, 'SIGTERM');
  await until('the end of the successor', () => findProcesses(/./).every((one) => one.pid !== pid));
});

test('skerry gateway refused says whom the gateway of these settings refused, to who may read its keys', async (t) => {
  const { http, write, start } = await open(t);
  await write();
  const first = start();
  listenTo(first);
  const firstEnds = end(first);
  await Promise.race([once(first, 'message'), firstEnds.then((code) => assert.fail(`it ended: ${code}`))]);
  const refused = async () => {
    const asking = start('refused');
    const said = listenTo(asking);
    return { code: await end(asking), said: await until('its answer', said, (text) => text.endsWith('\n')) };
  };
  const without = await refused();
  assert.match(without.said, /SKERRY_GATEWAY_API_KEYS.*INVALID_CONFIG/);
  assert.notEqual(without.code, 0);
  first.kill('SIGTERM');
  await firstEnds;

  await write({ SKERRY_GATEWAY_API_KEYS: 'correct-horse' });
  const second = start();
  listenTo(second);
  const secondEnds = end(second);
  await Promise.race([once(second, 'message'), secondEnds.then((code) => assert.fail(`it ended: ${code}`))]);
  assert.equal((await fetch(http)).status, 404);
  const { code, said } = await refused();
  assert.equal(code, 0, said);
  const { networks } = JSON.parse(said) as { networks: { network: string; reasons: unknown }[] };
  assert.deepEqual(networks, [
    { network: '127.0.0.0/24', count: 1, reasons: [{ reason: 'http_hostname_not_found', count: 1 }] },
  ]);
  second.kill('SIGTERM');
  await secondEnds;
});
