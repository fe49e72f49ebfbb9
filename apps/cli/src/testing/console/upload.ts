import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Browsing } from '../browser.ts';

/** A file that breaks off on its way, and goes on where it was. */

const FILE_BYTES = 6 * 1024 ** 2;
const CUT_AFTER_BYTES = 3 * 1024 ** 2;

/** Stands before a core node, and cuts the first connection that sends it so much. */
async function startCutter(target: string) {
  const { hostname, port } = new URL(target);
  const offsets: number[] = [];
  const sockets = new Set<Socket>();
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
      client.destroy();
      node.end();
    });
    client.pipe(node).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Where each part began. */
    offsets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Drops a file on a way that breaks, tries again, and finds the whole file at the node, although not all of it was sent again. */
export async function resumeUpload(browser: Browsing, core: string): Promise<void> {
  await using cutter = await startCutter(core);
  const bytes = randomBytes(FILE_BYTES);
  // What the browser says of a request that broke is no fault of the page.
  const look = { width: 1_600, theme: 'dark', expects: /ERR_|Failed to load resource/ } as const;
  await browser.look(`${core}/?core=${encodeURIComponent(cutter.url)}#/keys`, look, async (page) => {
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await press('Make a key');
    await page.getByRole('button', { name: 'Put it away' }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Files' }).click();
    const file = { name: 'large', mimeType: 'application/octet-stream', buffer: bytes };
    await page.getByLabel('files', { exact: true }).setInputFiles(file);
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
  const hash = createHash('sha256').update(bytes).digest('hex');
  const kept = await fetch(`${core}/api/v0/storage/raw/${hash}`);
  assert.equal(Buffer.compare(Buffer.from(await kept.arrayBuffer()), bytes), 0);
}
