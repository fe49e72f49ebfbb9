import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { computeService } from '@skerry/compute';
import { createLogger, type Host, readConfig } from '@skerry/kit';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { startPerson } from '../testing/person.ts';
import { createTestDir } from '../testing/run.ts';
import { SKERRY, until } from '../testing/shell.ts';

/** Only what hangs takes as long. */
const HANG_MS = 120_000;
const host: Host = { log: createLogger('test', 'fatal'), signal: new AbortController().signal };
const scheduler = createSigner(generatePrivateKey());

/** A compute node that runs programs and no machines, as a scheduler lists it. */
async function startNode(home: string, coreUrl: string) {
  const settings = {
    SKERRY_HOME: home,
    SKERRY_COMPUTE_HOST: '127.0.0.1',
    SKERRY_COMPUTE_PORT: '0',
    SKERRY_COMPUTE_CORE_URL: coreUrl,
    SKERRY_COMPUTE_PROGRAM_SPARES: '0',
    SKERRY_COMPUTE_PROGRAM_MEMORY_MIB: '256',
    SKERRY_COMPUTE_INSTALL_PACKAGES: 'no',
    SKERRY_COMPUTE_PREPARE_IMAGES: '',
  };
  const node = await computeService.start(readConfig(computeService.config, settings), host);
  const url = node.urls[0]!;
  const config = (await (await fetch(`${url}/status/config`)).json()) as { node_hash: string };
  return { url, nodeId: config.node_hash, [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() };
}

test('skerry program logs and run: what a program printed, by node, for its owner alone, and what it answers', async (t) => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_SCHEDULERS: scheduler.address,
    SKERRY_CORE_ALLOW_PRIVATE: 'yes',
  });
  const coreUrl = core.url;
  await using first = await startNode(join(home.path, 'one'), coreUrl);
  await using second = await startNode(join(home.path, 'two'), coreUrl);
  const runners = [first, second].map(({ nodeId, url }) => ({
    ...{ node_id: nodeId, node_address: scheduler.address, url, runtimes: ['python3'] },
  }));
  await new CoreClient({ url: coreUrl, signer: scheduler }).postMessage({
    type: 'POST',
    channel: NETWORK_CHANNEL.scheduling,
    content: { type: NETWORK_POST.runners, content: { runners, decided_at_ms: Date.now() } },
  });

  const skerry = await startPerson(home.path, { SKERRY_CORE_URL: coreUrl });
  await skerry('key', 'new');
  const file = join(home.path, 'hello.py');
  await writeFile(file, 'def main(v):\n  print("greeted", v["name"], "\\x1b[2J")\n  return 1\n');
  const hash = (await skerry('program', 'create', file)).out.trim();
  // A core node looks at the list of the schedulers now and then.
  const listed = async () => (await new CoreClient({ url: coreUrl }).listProgramRunners(hash)).length;
  await until('both nodes are listed', HANG_MS, async () => (await listed()) === 2);
  const logs = (...args: string[]) => skerry('program', 'logs', hash, ...args);

  const before = await logs();
  assert.deepEqual([before.code, before.out], [0, '']);
  assert.match(before.err, /no node has run the program/);
  assert.deepEqual(JSON.parse((await logs('--json')).out), []);

  const ran = await skerry('program', 'run', hash, '--var', 'name=Ada');
  assert.equal(ran.code, 0, ran.err);
  await until('its output is there', HANG_MS, async () => (await logs()).out === 'greeted Ada \n');
  const [told] = JSON.parse((await logs('--json')).out) as {
    url: string;
    lines: { MESSAGE: string; file: string }[];
    error: null;
  }[];
  assert.deepEqual(
    [told!.lines.map(({ MESSAGE, file }) => [MESSAGE, file]), told!.error],
    [[['greeted Ada \x1b[2J', 'stdout']], null],
  );

  // A caller may ask any node; then each part says which node it is from.
  const other = told!.url === first.url ? second : first;
  const called = await fetch(`${other.url}/vm/${hash}?name=Bob`);
  assert.equal(await called.text(), '1');
  await until('both have something', HANG_MS, async () => (await logs()).out.includes('Bob'));
  assert.equal(
    (await logs()).out,
    `==> ${told!.url} <==\ngreeted Ada \n\n==> ${other.url} <==\ngreeted Bob \n`,
  );

  // Followed for a program, each line is JSON.
  const follow = spawn(process.execPath, [SKERRY, 'program', 'logs', hash, '--follow', '--json'], {
    env: { ...bareEnvironment(), SKERRY_HOME: home.path, SKERRY_CORE_URL: coreUrl },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => follow.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(follow.stdout).on('line', (line) => lines.push(line));
  await until('a line of each node', HANG_MS, async () => lines.length === 2);
  follow.kill('SIGKILL');
  const lineOf = (url: string, name: string) => ({ url, MESSAGE: `greeted ${name} \x1b[2J`, file: 'stdout' });
  assert.deepEqual(
    lines
      .map((line) => JSON.parse(line) as { MESSAGE: string })
      .sort((a, b) => (a.MESSAGE < b.MESSAGE ? -1 : 1)),
    [lineOf(told!.url, 'Ada'), lineOf(other.url, 'Bob')],
  );

  const quiet = join(home.path, 'quiet.py');
  await writeFile(quiet, 'def main(v): return 1\n');
  const silent = (await skerry('program', 'create', quiet)).out.trim();
  assert.equal((await skerry('program', 'run', silent)).code, 0);
  await until('it is told that there is nothing', HANG_MS, async () => {
    const { out, err } = await skerry('program', 'logs', silent);
    return out === '' && err === 'the program printed nothing\n';
  });

  // What a program answers is printed in any case, and that it is a failure is told beside it.
  const teapot = join(home.path, 'teapot.py');
  await writeFile(
    teapot,
    `def app(environ, start_response):
  start_response("418 I'm a teapot", [("content-type", "text/plain")])
  return [b"short and stout"]
`,
  );
  const pot = (await skerry('program', 'create', teapot)).out.trim();
  const tea = await skerry('program', 'run', pot);
  assert.deepEqual(tea, {
    ...{ code: 6, out: 'short and stout' },
    err: 'error: the program answered 418 (PROGRAM_FAILED)\n',
  });
  const asked = await skerry('program', 'run', pot, '--json');
  const failure = { error: 'the program answered 418', status: 'error', code: 'PROGRAM_FAILED' };
  assert.deepEqual(
    [asked.code, JSON.parse(asked.out), JSON.parse(asked.err)],
    [
      6,
      { status: 418, content_type: 'text/plain', output: 'short and stout' },
      { ...failure, details: { status: 418 } },
    ],
  );

  await skerry('key', 'new', '--key', 'other');
  const refused = await logs('--key', 'other');
  assert.equal(refused.code, 4, refused.err);
  assert.match(refused.err, /only the owner of the program.*NOT_PERMITTED/);
  const unknown = await skerry('program', 'logs', 'f'.repeat(64));
  assert.deepEqual([unknown.code, /PROGRAM_NOT_FOUND/.test(unknown.err)], [3, true]);
});
