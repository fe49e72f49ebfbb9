import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import type { Page } from 'playwright-core';
import type { Browsing } from '../browser.ts';
import { until } from '../shell.ts';

/** A file that breaks off on its way, and goes on where it was. */

const FILE_BYTES = 6 * 1024 ** 2;
const CUT_AFTER_BYTES = 3 * 1024 ** 2;

/** Stands before a core node. The first connection that sends it so much is cut, or held: nothing more of it passes. */
async function startCutter(target: string, isHolding: boolean) {
  const { hostname, port } = new URL(target);
  const offsets: number[] = [];
  const sockets = new Set<Socket>();
  const [held, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isArmed = true;
  const server = createServer((client) => {
    const node = connect(Number(port), hostname);
    let sent = 0;
    for (const socket of [client, node]) {
      sockets.add(socket);
      socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    }
    client.on('data', (chunk: Buffer) => {
      sent += chunk.length;
      const [, offset] = /^PUT [^\r]*[?&]offset=([0-9]+)/m.exec(chunk.toString('latin1')) ?? [];
      if (offset !== undefined) offsets.push(Number(offset));
      if (!isArmed || sent < CUT_AFTER_BYTES) return;
      isArmed = false;
      if (!isHolding) {
        client.destroy();
        node.end();
        return;
      }
      client.unpipe(node).resume();
      client.once('close', () => {
        node.end();
        gone.resolve();
      });
      held.resolve();
    });
    client.pipe(node).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Where each part began. */
    offsets,
    /** Resolves when a connection is held, and when the browser has let it go. */
    held: held.promise,
    gone: gone.promise,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Only what hangs takes as long. */
const SOON_MS = 120_000;
const FILE = { name: 'large', mimeType: 'application/octet-stream' };
// What the browser says of a request that broke is no fault of the page.
const LOOK = { width: 1_600, theme: 'dark', expects: /ERR_|Failed to load resource/ } as const;
const pressIn = (page: Page) => (name: string) => page.getByRole('button', { name, exact: true }).click();

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function assertKept(core: string, bytes: Buffer): Promise<void> {
  const kept = await fetch(`${core}/api/v0/storage/raw/${hashOf(bytes)}`);
  assert.equal(Buffer.compare(Buffer.from(await kept.arrayBuffer()), bytes), 0);
}

/** Drops a file on a way that breaks, tries again, and finds the whole file at the node, although not all of it was sent again. */
async function tryAgain(browser: Browsing, core: string): Promise<void> {
  await using cutter = await startCutter(core, false);
  const bytes = randomBytes(FILE_BYTES);
  await browser.look(`${core}/?core=${encodeURIComponent(cutter.url)}#/keys`, LOOK, async (page) => {
    const press = pressIn(page);
    await press('Make a key');
    await page.getByRole('button', { name: 'Put it away' }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Files' }).click();
    await page.getByLabel('files', { exact: true }).setInputFiles({ ...FILE, buffer: bytes });
    await press('Sign and send');
    await press('Sign');
    const stored = page.locator('[data-state=stored]');
    const again = page.getByRole('button', { name: 'Try again', exact: true });
    // A browser may try again by itself, and then the page goes on by itself.
    await again.or(stored).first().waitFor();
    if (await again.isVisible()) {
      await again.click();
      await press('Sign');
    }
    await stored.waitFor();
  });
  assert.ok(cutter.offsets.at(-1)! > 0, `the last part began at ${cutter.offsets.join(', ')}`);
  await assertKept(core, bytes);
}

/** Brings a key along, and begins to send a file. */
async function beginToSend(page: Page, key: string, buffer: Buffer): Promise<void> {
  const press = pressIn(page);
  await page.getByText('Bring a key along').click();
  await page.getByLabel('Private key').fill(key);
  await press('Use it');
  await page.getByRole('button', { name: 'Put it away' }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Files' }).click();
  await page.getByLabel('files', { exact: true }).setInputFiles({ ...FILE, buffer });
  await press('Sign and send');
  await press('Sign');
}

/** Loads the page anew in the middle of a file, and chooses the same file with the same key: the rest alone is sent. */
async function loadAnew(browser: Browsing, core: string): Promise<void> {
  await using cutter = await startCutter(core, true);
  const [bytes, key] = [randomBytes(FILE_BYTES), generatePrivateKey()];
  const url = `${core}/?core=${encodeURIComponent(cutter.url)}#/keys`;
  const client = new CoreClient({ url: core, signer: createSigner(key) });
  const hash = hashOf(bytes);
  await browser.look(url, LOOK, async (page) => {
    await beginToSend(page, key, bytes);
    await cutter.held;
    assert.deepEqual(cutter.offsets, [0]);
    await page.goto('about:blank');
    await cutter.gone;
    await until(
      'the node has what arrived',
      SOON_MS,
      async () => (await client.getUpload(hash, FILE_BYTES)).received > 0,
    );
    await page.goto(url);
    await beginToSend(page, key, bytes);
    const had = page.locator('[data-state=stored] [data-had]');
    await had.waitFor();
    const told = Number(await had.getAttribute('data-had'));
    assert.ok(told > 0 && told < FILE_BYTES, `the page says that the node had ${told} bytes`);
    assert.ok(
      cutter.offsets.length > 1 && cutter.offsets.slice(1).every((at) => at >= told),
      String(cutter.offsets),
    );
  });
  await assertKept(core, bytes);
}

/** A file that breaks off in the middle is whole at the node in the end, although not all of it was sent again. */
export async function resumeUpload(browser: Browsing, core: string): Promise<void> {
  await tryAgain(browser, core);
  await loadAnew(browser, core);
}
