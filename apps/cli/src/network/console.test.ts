import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { skerryHere } from '../testing/here.ts';
import { SKERRY } from '../testing/shell.ts';

/** Nothing listens on the discard port: the page is served whether or not the core node answers. */
const NOWHERE = 'http://127.0.0.1:9';

async function start(): Promise<{ child: ChildProcess; told: { url: string; core: string; build: string } }> {
  const child = spawn(process.execPath, [SKERRY, 'console', '--json', '--core', NOWHERE], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const line of createInterface({ input: child.stdout! })) {
    text += line;
    if (line === '}') break;
  }
  return { child, told: JSON.parse(text) };
}

test('skerry console --check compares what is served byte by byte, and names a file that was changed', async () => {
  const { child, told } = await start();
  let change = (body: Buffer): Buffer => body;
  const between = createServer(async ({ url = '/' }, response) => {
    const inner = await fetch(new URL(url, told.url), { headers: { accept: 'text/html' } });
    const body = change(Buffer.from(await inner.arrayBuffer()));
    response.writeHead(inner.status).end(body);
  }).listen(0, '127.0.0.1');
  try {
    await once(between, 'listening');
    const core = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
    const check = () => skerryHere(process.env, ['console', '--check', '--json', '--core', core]);
    const same = await check();
    const { served_build: served, is_same: isSame } = JSON.parse(same.out);
    assert.deepEqual([same.code, served, isSame], [0, told.build, true]);
    // The page is as it was: the build that it names says nothing of what else is served.
    change = (body) => Buffer.from(body.toString('latin1').replace('connect', 'connecT'), 'latin1');
    const { code, out } = await check();
    const { differing, served_build: stillNamed } = JSON.parse(out);
    assert.deepEqual([code, stillNamed], [1, told.build]);
    assert.ok(differing.length > 0);
    assert.ok(differing.every(({ is }: { is: string }) => is === 'different'));
    change = () => Buffer.alloc(0);
    assert.equal(JSON.parse((await check()).out).served_build, '');
  } finally {
    between.closeAllConnections();
    between.close();
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    await ended;
  }
});

test("skerry console serves the page from this machine, begins at the network's core node, and ends when it is told to", async () => {
  const { child, told } = await start();
  try {
    assert.equal(told.core, NOWHERE);
    const page = await fetch(told.url, { headers: { accept: 'text/html' } });
    assert.equal(new URL(page.url).searchParams.get('core'), NOWHERE);
    assert.match(page.headers.get('content-security-policy')!, /connect-src [^;]*http:\/\/127\.0\.0\.1:9;/);
    const body = await page.text();
    assert.ok(
      body.includes(`<meta name="build" content="${told.build}">`),
      'the build is the one of the page',
    );
    assert.match(told.build, /^[0-9a-f]{64}$/);
    const [, script] = /src="([^"]*\.js)"/.exec(body)!;
    const loaded = await fetch(new URL(script!, told.url));
    assert.match(loaded.headers.get('content-type')!, /^text\/javascript/);
    assert.match(loaded.headers.get('cache-control')!, /immutable/);
    assert.equal((await fetch(`${told.url}console/none.js`)).status, 404);
    assert.equal((await fetch(told.url, { method: 'POST' })).status, 405);
    const { code, err } = await skerryHere(process.env, [
      ...['console', '--core', NOWHERE, '--port', new URL(told.url).port],
    ]);
    assert.equal(code, 1);
    assert.match(err, /PORT_IN_USE|something else uses port/);
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    assert.deepEqual((await ended)[0], 0);
  }
});
