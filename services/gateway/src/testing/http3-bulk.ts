import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@skerry/kit';
import type { Page } from 'playwright-core';
import { endOf, openSite, type Say, startBrowser, startCaddy, startPlane } from './http3.ts';
import { RoughPath } from './rough-path.ts';

interface HashingServer extends AsyncDisposable {
  readonly port: number;
}

/** Answers each request with the SHA-256 of its body, in hexadecimal. */
async function startHashing(): Promise<HashingServer> {
  const server = createServer(async (request, response) => {
    const hash = createHash('sha256');
    for await (const chunk of request) hash.update(chunk as Uint8Array);
    response.end(hash.digest('hex'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The page's file comes, and goes back to where bodies are hashed. */
async function downAndUp(page: Page) {
  return await page.evaluate(async () => {
    const began = performance.now();
    const body = await (await fetch('/data', { cache: 'no-store' })).arrayBuffer();
    const came = performance.now();
    const sent = await fetch('/upload', { method: 'POST', body: new Blob([body]) });
    const uploaded = await sent.text();
    const went = performance.now();
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
    const entries = performance.getEntries() as (PerformanceEntry & { nextHopProtocol?: string })[];
    return {
      downloaded: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
      uploaded,
      downMs: Math.round(came - began),
      upMs: Math.round(went - came),
      protocols: [...new Set(entries.flatMap((entry) => entry.nextHopProtocol || []))],
    };
  });
}

/**
 * Chromium downloads a file over HTTP/3 through the gateway and uploads it again; both ends have the same hash.
 *
 * @param roughness one in so many datagrams is lost, repeated and reordered, each, between browser and gateway; undefined for none
 */
export async function checkHttp3Bulk(bytes: number, say: Say, roughness?: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-http3-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const hashing = stack.use(await startHashing());
  const upstream = await findFreePort();
  const servers = await startCaddy(directory, upstream, bytes, hashing.port);
  stack.defer(() => endOf(servers.process));
  const { plane, port } = await startPlane({
    upstreamHttpsPort: upstream,
    handoverPath: join(directory, 'listeners.sock'),
  });
  stack.use(plane);
  const path = roughness === undefined ? undefined : stack.use(await RoughPath.open(port, roughness, 1));
  const browser = await startBrowser(path?.port ?? port, servers);
  stack.defer(() => browser.close());
  const site = servers.sites[0]!;
  const seen = await downAndUp(await openSite(browser, site));
  const hash = createHash('sha256').update(site.data).digest('hex');
  assert.deepEqual([seen.downloaded, seen.uploaded, seen.protocols], [hash, hash, ['h3']]);
  const { figures } = plane.stats().quic;
  assert.ok(figures.quicBytesToClients > bytes && figures.quicBytesToInstances > bytes);
  say(`${bytes} bytes over h3: down in ${seen.downMs} ms, up in ${seen.upMs} ms, the same hash`);
  if (path) {
    const { passed, ...harmed } = path.counts;
    for (const count of Object.values(harmed)) assert.ok(count > 0);
    say(`${passed} datagrams passed; ${JSON.stringify(harmed)}`);
  }
}
