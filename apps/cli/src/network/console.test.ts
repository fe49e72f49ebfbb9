import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOWHERE, serveChanged, serveConsole } from '../testing/console/served.ts';
import { skerryHere } from '../testing/here.ts';

test('skerry console --check compares what is served byte by byte, and names a file that was changed', async () => {
  await using console = await serveConsole();
  const { told } = console;
  using node = await serveChanged(told.url);
  const check = () => skerryHere(process.env, ['console', '--check', '--json', '--core', node.core]);
  const same = await check();
  const { served_build: served, is_same: isSame } = JSON.parse(same.out);
  assert.deepEqual([same.code, served, isSame], [0, told.build, true]);
  // The page is as it was: the build that it names says nothing of what else is served.
  node.change = (body) => Buffer.from(body.toString('latin1').replace('connect', 'connecT'), 'latin1');
  const { code, out } = await check();
  const { differing, served_build: stillNamed } = JSON.parse(out);
  assert.deepEqual([code, stillNamed], [1, told.build]);
  assert.ok(differing.length > 0);
  assert.ok(differing.every(({ is }: { is: string }) => is === 'different'));
  node.change = () => Buffer.alloc(0);
  assert.equal(JSON.parse((await check()).out).served_build, '');
});

test("skerry console serves the page from this machine, begins at the network's core node, and ends when it is told to", async () => {
  await using console = await serveConsole();
  const { told, end } = console;
  assert.equal(told.core, NOWHERE);
  const page = await fetch(told.url, { headers: { accept: 'text/html' } });
  assert.equal(new URL(page.url).searchParams.get('core'), NOWHERE);
  assert.match(page.headers.get('content-security-policy')!, /connect-src [^;]*http:\/\/127\.0\.0\.1:9;/);
  const body = await page.text();
  assert.ok(body.includes(`<meta name="build" content="${told.build}">`), 'the build is the one of the page');
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
  assert.equal(await end(), 0);
});
