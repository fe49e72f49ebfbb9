import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { until } from '@skerry/kit/testing/until';
import { REACHABILITY_PATH } from '@skerry/protocol/api/core/reachability';
import { createTestCore, type TestCore } from '../testing/core.ts';

const NONCE = '5a'.repeat(32);
/** Some address of somebody else, and a client at a public one. */
const ELSEWHERE = 'http://192.0.2.1:80';
const PUBLIC_CLIENT = '93.184.215.14';

/** Accepts nobody: once two wait, the kernel drops what else comes. */
const LISTEN_AND_BLOCK = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:worker_threads').parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;

let core: TestCore;
before(async () => {
  core = await createTestCore();
});
after(() => core[Symbol.asyncDispose]());

/** Whoever is tried: counts what comes. */
async function listen(answer: RequestListener, host = '127.0.0.1') {
  const paths: string[] = [];
  const server: Server = createServer((request, response) => {
    paths.push(request.url ?? '');
    answer(request, response);
  }).listen(0, host);
  await once(server, 'listening');
  return {
    paths,
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const ask = async (
  body: object,
  {
    remoteAddress = '127.0.0.1',
    headers = {},
    node = core,
  }: {
    remoteAddress?: string;
    headers?: Record<string, string>;
    node?: TestCore;
  } = {},
) => {
  const answer = await node.api.inject({
    method: 'POST',
    url: '/api/v0/reachability',
    remoteAddress,
    headers: { 'content-type': 'application/json', ...headers },
    payload: JSON.stringify({ nonce: NONCE, ...body }),
  });
  return answer.json() as { verdict?: string; seen_as?: string; code?: string };
};

describe('a node connects to whoever asks, and to nobody else', () => {
  test('the nonce is answered', async () => {
    using caller = await listen((_request, response) => response.end(`${NONCE}\n`));
    assert.deepEqual(await ask({ url: caller.url }), { verdict: 'REACHED', seen_as: '127.0.0.1' });
    assert.deepEqual(await ask({ url: `http://localhost:${caller.port}` }), {
      verdict: 'REACHED',
      seen_as: '127.0.0.1',
    });
    // The nonce is not told on the way, so that what repeats its question answers nothing.
    assert.deepEqual(caller.paths, [REACHABILITY_PATH, REACHABILITY_PATH]);
  });

  test('another address is not connected to, whatever it is called', async () => {
    using other = await listen((_request, response) => response.end(NONCE), '127.0.0.2');
    for (const url of [
      other.url,
      ELSEWHERE,
      `http://[::ffff:127.0.0.2]:${other.port}`,
      `http://2130706434:${other.port}`,
      `http://0x7f.2:${other.port}`,
    ])
      assert.equal((await ask({ url })).verdict, 'NOT_YOURS', url);
    assert.deepEqual(other.paths, []);
  });

  test('a redirect, an echo, a huge answer and another page are only another answer', async () => {
    using target = await listen((_request, response) => response.end(NONCE));
    const answers: RequestListener[] = [
      (_request, response) => response.writeHead(302, { location: target.url }).end(),
      (request, response) => response.end(request.url),
      (_request, response) => response.end(NONCE.repeat(100_000)),
      (_request, response) => response.end('hello'),
    ];
    for (const answer of answers) {
      using caller = await listen(answer);
      assert.deepEqual(await ask({ url: caller.url }), {
        verdict: 'OTHER_ANSWER',
        seen_as: '127.0.0.1',
      });
    }
    assert.deepEqual(target.paths, []);
  });

  test('silence ends in time; nothing there is no connection', async () => {
    using silent = await listen(() => {});
    assert.equal((await ask({ url: silent.url })).verdict, 'NO_ANSWER');
    assert.equal((await ask({ url: 'http://127.0.0.1:9' })).verdict, 'NO_CONNECTION');
    assert.equal((await ask({ url: silent.url.replace('http:', 'https:') })).verdict, 'NO_ANSWER');
  });

  test('a firewall that drops is no connection', {
    skip: process.platform === 'linux' ? false : 'needs Linux',
  }, async () => {
    const worker = new Worker(LISTEN_AND_BLOCK, { eval: true });
    const [port] = (await once(worker, 'message')) as [number];
    const fillers = [1, 2, 3].map(() => connect(port, '127.0.0.1').on('error', () => {}));
    try {
      await until('the queue is full', async () => fillers.filter((one) => !one.connecting).length >= 2);
      assert.equal((await ask({ url: `http://127.0.0.1:${port}` })).verdict, 'NO_CONNECTION');
    } finally {
      for (const filler of fillers) filler.destroy();
      await worker.terminate();
    }
  });

  test('private callers only where the operator allows it, and nobody behind an unknown proxy', async () => {
    await using strict = await createTestCore({ allowPrivate: false });
    using caller = await listen((_request, response) => response.end(NONCE));
    assert.deepEqual(await ask({ url: caller.url }, { node: strict }), {
      verdict: 'NOT_PUBLIC',
      seen_as: '127.0.0.1',
    });
    const prefix = await ask({ ipv6_prefix: 'fd00:1:2:3::/64' }, { node: strict });
    assert.equal(prefix.verdict, 'NOT_PUBLIC');
    const behind = { 'x-forwarded-for': PUBLIC_CLIENT };
    assert.deepEqual(await ask({ url: caller.url }, { headers: behind }), {
      verdict: 'UNKNOWN_CLIENT',
      seen_as: null,
    });
    assert.deepEqual(caller.paths, []);
  });

  test('of a prefix nothing is told but whether the nonce was answered', async () => {
    const told = await ask({ ipv6_prefix: 'fd00:1:2:3::/64' });
    assert.deepEqual(told, { verdict: 'NO_ANSWER', seen_as: '127.0.0.1' });
  });

  test('all callers together may have so many prefixes tried, and each so much', async () => {
    await using node = await createTestCore();
    const tried = Array.from({ length: 61 }, (_, n) => ask({ ipv6_prefix: `fd00:1:2:${n}::/64` }, { node }));
    const codes = (await Promise.all(tried)).map(({ verdict, code }) => verdict ?? code);
    assert.deepEqual([...new Set(codes)].sort(), ['NO_ANSWER', 'OVERLOADED']);
    const mine: (string | undefined)[] = [];
    for (let n = 0; n < 11; n++)
      mine.push((await ask({ url: ELSEWHERE }, { node, remoteAddress: PUBLIC_CLIENT })).code);
    assert.deepEqual(new Set(mine), new Set([undefined, 'RATE_LIMITED']));
  });
});
