import assert from 'node:assert/strict';
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { readConfig } from '@skerry/kit';
import { until } from '../dataplane/testing/suite/world.ts';
import { gatewayService } from '../index.ts';
import { helloWire } from '../tls/testing/hello.ts';
import { HOST, log, running, Scene } from './scene.ts';

export interface UpgradeCounts {
  readonly transfers: number;
  readonly changes: number;
  /** Of each transfer, at least; it goes on until all is over. */
  readonly bytes: number;
}

const PIECE = randomBytes(8192);
/** Pieces that are sent in a millisecond by all together: what one thread can do beside the rest. */
const TRANSFERS_PER_MS = 8;
/** Fewer than may be without a name at the same time. */
const COMING_AT_ONCE = 100;
const DEADLINE_MS = 300_000;
const CHANGES_PER_TURN = 100;
const OTHER_INSTANCES = 700;
const CLIENTS_PER_ADDRESS = 1000;
const ADDRESSES = ['::1', '::ffff:127.0.0.1'];

/** One client that sends pieces, each when the one before it is back, and keeps both sums. */
class Transfer {
  readonly #socket: Socket;
  readonly #sent: Hash = createHash('sha256');
  readonly #received: Hash = createHash('sha256');
  readonly #isOver: (bytes: number) => boolean;
  readonly #pauseMs: number;
  #awaited = 0;
  bytes = 0;
  readonly done: Promise<void>;

  constructor(port: number, index: number, pauseMs: number, isOver: (bytes: number) => boolean) {
    this.#isOver = isOver;
    this.#pauseMs = pauseMs;
    const localAddress = `127.0.0.${2 + Math.floor(index / CLIENTS_PER_ADDRESS)}`;
    this.#socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    this.done = new Promise((resolve, reject) => {
      this.#socket.once('error', reject).once('close', () => reject(new Error('broken')));
      this.#socket.once('end', () => this.#judge(resolve, reject));
    });
    // Whoever waits for all of them learns of it.
    this.done.catch(() => {});
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#send(helloWire({ serverName: HOST }));
  }

  #send(bytes: Uint8Array): void {
    this.#sent.update(bytes);
    this.#awaited += bytes.length;
    this.#socket.write(bytes);
  }

  #take(chunk: Buffer): void {
    this.#received.update(chunk);
    this.#awaited -= chunk.length;
    this.bytes += chunk.length;
    if (this.#awaited > 0) return;
    if (this.#isOver(this.bytes)) this.#socket.end();
    else setTimeout(() => this.#send(PIECE), this.#pauseMs);
  }

  #judge(resolve: () => void, reject: (error: Error) => void): void {
    if (this.#sent.digest('hex') === this.#received.digest('hex')) resolve();
    else reject(new Error('what came back is not what was sent'));
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** So many changes of routes, the name of the transfers itself among them; resolves when the gateway has the last. */
async function changeRoutes(scene: Scene, changes: number): Promise<void> {
  for (let i = 0; i < changes; i++) {
    const hash = (i % OTHER_INSTANCES).toString(16).padStart(4, '0').padEnd(64, '7');
    const isOwn = i % 10 === 0;
    const ipv6 = ADDRESSES[Math.floor(i / 7) % ADDRESSES.length]!;
    if (isOwn) scene.core.put({ ...running, ipv6 });
    else scene.core.put({ instance_id: hash, ipv6, desired: i % 3 ? 'running' : 'stopped' });
    if (i % CHANGES_PER_TURN === 0) await turn();
  }
  scene.core.put(running);
}

/** Until a gateway knows what the core node tells last. */
async function untilCaughtUp(scene: Scene, apiUrl: string): Promise<void> {
  const last = `${OTHER_INSTANCES}`.padEnd(64, '9');
  scene.core.put({ instance_id: last, ipv6: '::1' });
  const isKnown = async () =>
    ((await (await fetch(`${apiUrl}/api/hash/${last}`)).json()) as { active: boolean }).active;
  while (!(await isKnown()));
}

/** Long-lived transfers through the gateway, while its routes change and another gateway takes its place. */
export async function checkUpgrade(counts: UpgradeCounts, say: (line: string) => void): Promise<void> {
  const instance = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => {}).pipe(socket);
  });
  instance.listen({ port: 0, host: '::', backlog: counts.transfers });
  await once(instance, 'listening');
  const { port: upstream } = instance.address() as AddressInfo;
  await using scene = await Scene.open({ SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(upstream) });
  scene.core.putQuietly(running);
  await scene.start();
  await scene.untilActive();
  const [http, https, api] = scene.urls.map((url) => new URL(url).port);
  const startMs = performance.now();
  let isOver = false;
  const open = (index: number) =>
    new Transfer(
      Number(https),
      index,
      counts.transfers / TRANSFERS_PER_MS,
      (bytes) => isOver && bytes >= counts.bytes,
    );
  const transfers: Transfer[] = [];
  while (transfers.length < counts.transfers) {
    const some = Array.from({ length: COMING_AT_ONCE }, (_, index) => open(transfers.length + index));
    transfers.push(...some);
    await until(() => some.every(({ bytes }) => bytes > 0), DEADLINE_MS);
  }
  say(`${transfers.length} transfers are open after ${Math.round(performance.now() - startMs)} ms`);

  await changeRoutes(scene, counts.changes / 2);
  const config = readConfig(gatewayService.config, {
    ...scene.settings,
    SKERRY_GATEWAY_HTTP_PORT: http,
    SKERRY_GATEWAY_HTTPS_PORT: https,
    SKERRY_GATEWAY_API_PORT: api,
    SKERRY_GATEWAY_REPLACE: 'yes',
  });
  await using second = await gatewayService.start(config, { log, signal: new AbortController().signal });
  await scene.stopped;
  say(`another gateway has taken over after ${Math.round(performance.now() - startMs)} ms`);
  await changeRoutes(scene, counts.changes / 2);
  await untilCaughtUp(scene, second.urls[2]!);
  // Those that come now are the new gateway's.
  transfers.push(...Array.from({ length: 10 }, (_, index) => open(index)));
  isOver = true;
  const timeout = setTimeout(() => assert.fail('the transfers do not come to their end'), DEADLINE_MS);
  const ends = await Promise.allSettled(transfers.map(({ done }) => done));
  clearTimeout(timeout);
  const broken = ends.filter(({ status }) => status === 'rejected');
  const bytes = transfers.reduce((sum, transfer) => sum + transfer.bytes, 0);
  say(
    `${counts.changes} route changes and an upgrade: ${broken.length} of ${ends.length} transfers broken, ` +
      `${Math.round(bytes / 1e6)} MB with equal checksums, ${Math.round(performance.now() - startMs)} ms`,
  );
  instance.close();
  assert.deepEqual(broken, []);
}
