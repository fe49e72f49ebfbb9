import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createAsker, createReach } from '@skerry/kit';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { NETWORK_CHANNEL, NETWORK_POST, nodeIdOf, type Runner } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { forwardRun, orderRunners } from './forward.ts';

const runnerAt = (url: string): Runner => ({
  node_id: nodeIdOf(signers.node.address),
  node_address: signers.node.address,
  url,
  runtimes: ['nodejs'],
});

const STORED = {
  programHash: 'a'.repeat(64),
  owner: signers.alice.address,
  program: { runtime: { kind: 'named', runtime: 'nodejs' }, timeoutSeconds: 1 },
} as unknown as Parameters<typeof forwardRun>[1];

const optionsOf = (allowPrivate: boolean) => ({
  caller: 'somebody',
  asker: createAsker({ mayReach: createReach(allowPrivate) }),
  signal: new AbortController().signal,
});

async function startSecret() {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    response.writeHead(200, { 'net-program-outcome': 'answered' }).end('secret');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get asked() {
      return asked;
    },
    [Symbol.dispose]: () => void server.close(),
  };
}

test('H3: a call of a program is not sent to this machine on a node’s word', async () => {
  using secret = await startSecret();
  await using core = await createTestCore({ allowPrivate: false });
  const content = { name: 'a', code: 'x', runtime: 'nodejs', memory: 64, timeout: 1 };
  const hash = (await core.send(signers.alice, { type: 'PROGRAM', content })).body.item_hash as string;
  const list = { runners: [runnerAt(`http://127.0.0.1:${secret.port}`)], decided_at_ms: 1 };
  await core.send(signers.scheduler, {
    type: 'POST',
    channel: NETWORK_CHANNEL.scheduling,
    content: { type: NETWORK_POST.runners, content: list },
  });
  const { status, body } = await core.post(`/run/${hash}`, '{}');
  assert.deepEqual([secret.asked, status, body.code], [0, 503, 'NO_RUNNER']);
});

test('H3: what is refused reads the same, whatever is there', async () => {
  using secret = await startSecret();
  const options = optionsOf(false);
  const said: string[] = [];
  for (const url of [
    `http://127.0.0.1:${secret.port}`,
    'http://127.0.0.1:1',
    `http://localhost:${secret.port}`,
    `http://[::ffff:127.0.0.1]:${secret.port}`,
    `http://[64:ff9b::7f00:1]:${secret.port}`,
  ])
    await forwardRun([runnerAt(url)], STORED, {}, options).catch((error: Error) => said.push(error.message));
  assert.deepEqual([secret.asked, said.length, new Set(said).size], [0, 5, 1]);
});

/** Runs a program on a node that answers so once it has read the call. */
async function runOn(answer: RequestListener) {
  const server = createServer((request, response) => {
    request.resume().once('end', () => void answer(request, response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const runner = runnerAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return await forwardRun([runner], STORED, {}, optionsOf(true));
  } finally {
    server.close();
  }
}

test('a program that a compute node has not heard of yet runs once it has', async () => {
  let asked = 0;
  const output = await runOn((_request, response) => {
    if (++asked < 3)
      response.writeHead(404).end(JSON.stringify({ error: 'no such program', code: 'PROGRAM_NOT_FOUND' }));
    else response.writeHead(200, { 'net-program-outcome': 'answered' }).end('well');
  });
  assert.deepEqual([output.body.toString(), asked], ['well', 3]);
});

test('how a program was started is passed on, and no other word in its place', async () => {
  const startOf = async (word: string) => {
    const output = await runOn((_request, response) => {
      response.writeHead(200, { 'net-program-outcome': 'answered', 'net-program-start': word }).end();
    });
    return output.start;
  };
  assert.deepEqual(
    [await startOf('warm'), await startOf('cold'), await startOf('<b>')],
    ['warm', 'cold', undefined],
  );
});

test('of the details of a node’s refusal only a bounded traceback is passed on', async () => {
  const details = { traceback: 'x'.repeat(1_000_000), other: 'y'.repeat(1_000_000) };
  const failed = runOn((_request, response) => {
    response.writeHead(500).end(JSON.stringify({ error: 'it failed', code: 'PROGRAM_FAILED', details }));
  });
  await assert.rejects(failed, (error: unknown) => {
    const { code, details: passed } = error as { code: string; details: object };
    assert.deepEqual([code, Object.keys(passed)], ['PROGRAM_FAILED', ['traceback']]);
    return JSON.stringify(passed).length < 100_000;
  });
});

/** A node in a process of its own, and how many calls it was given to run. */
const NODE = `
  let runs = 0;
  require('node:http').createServer((request, response) => {
    if (request.method === 'GET') return response.end(String(runs));
    request.on('error', () => {}).resume().on('end', () => {
      runs++;
      if (request.url.includes('silent')) return;
      response.writeHead(200, { 'net-program-outcome': 'answered' }).end('ran');
    });
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
`;

async function startNode() {
  const child = spawn(process.execPath, ['-e', NODE], { stdio: ['ignore', 'pipe', 'pipe'] });
  const port = await awaitOutput(child, 'a node', hear(child, ['stderr']));
  const url = `http://127.0.0.1:${Number(port)}`;
  return {
    url,
    child,
    runs: async () => Number(await (await fetch(url)).text()),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

test('a node that is stopped takes no call: another one runs the program, and alone it is no fault of the program', async () => {
  using stopped = await startNode();
  using well = await startNode();
  const options = { ...optionsOf(true), takeMs: 500 };
  // The first one in order is the one that is stopped.
  const ids = ['1', '2'].map((digit) => ({ ...runnerAt(''), node_id: digit.repeat(64) }));
  const urls = [stopped.url, well.url];
  const runners = orderRunners(ids, STORED).map((runner, at) => ({ ...runner, url: urls[at]! }));
  stopped.child.kill('SIGSTOP');
  assert.equal((await forwardRun(runners, STORED, {}, options)).body.toString(), 'ran');
  await assert.rejects(forwardRun(runners.slice(0, 1), STORED, {}, options), {
    code: 'NO_RUNNER',
    message: /does not take the call, so the program did not run/,
  });
  stopped.child.kill('SIGCONT');
  // It reads its connections in their order: what it was sent came before this.
  assert.deepEqual([await stopped.runs(), await well.runs()], [0, 1]);
});
