import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificate } from '../dataplane/testing/suite/certificate.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, until } from '../dataplane/testing/suite/world.ts';
import { endOf, freePort, type Say, type Site, startCaddy, startPlane } from './http3.ts';

/** ngtcp2's example programs, which Debian's ngtcp2-client and ngtcp2-server bring. */
export const NGTCP2_CLIENT = 'gtlsclient';
export const NGTCP2_SERVER = 'gtlsserver';
/** It names in its hello the host that it connects to, so the names have to lead to loopback: in a mount namespace of its own. */
const AT_LOOPBACK = ['--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"'];
/** It waits for as long itself where nobody answers. */
const LIMIT_MS = 180_000;
/** RFC 9001 §4.8: the alert unrecognized_name, as the gateway refuses a name without a route. */
const UNRECOGNIZED_NAME = /0x(0*)170/;

interface Place {
  /** A hosts file (hosts(5)). */
  readonly hosts: string;
  readonly port: number;
}

interface Run {
  readonly code: number | null;
  readonly said: string;
}

/** One request of ngtcp2's client, as root. */
async function request({ hosts, port }: Place, name: string, args: readonly string[]): Promise<Run> {
  const words = [NGTCP2_CLIENT, ...args, name, String(port), `https://${name}/data`];
  const child = spawn('unshare', [...AT_LOOPBACK, hosts, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const hear = (chunk: Buffer) => {
    said = (said + chunk).slice(-1024 * 1024);
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  } finally {
    clearTimeout(limit);
  }
}

async function download(
  place: Place,
  { name, data }: Site,
  how: { readonly what: string; readonly args: readonly string[] },
  say: Say,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-ngtcp2-'));
  try {
    const sinceMs = performance.now();
    const quiet = ['--quiet', '--exit-on-all-streams-close', `--download=${directory}`];
    const { code, said } = await request(place, name, [...quiet, ...how.args]);
    assert.equal(code, 0, `${how.what}: ${said.slice(-2_000)}`);
    const came = await readFile(join(directory, 'data'));
    assert.ok(data.equals(came), `${how.what}: ${came.length} bytes came; ${said.slice(-2_000)}`);
    say(
      `ngtcp2, ${how.what}: ${data.length} bytes in ${Math.round(performance.now() - sinceMs)} ms, the same`,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

type Ways = readonly { readonly what: string; readonly args: readonly string[] }[];

const WAYS: Ways = [
  { what: 'as it comes', args: [] },
  { what: 'with P-256 alone', args: ['--groups=-GROUP-ALL:+GROUP-SECP256R1'] },
  { what: 'one datagram in fifty lost each way', args: ['--tx-loss=0.02', '--rx-loss=0.02'] },
];
/** It moves in the middle: the server's ids for that were told in packets that the gateway does not open. */
const MOVE = { what: 'a move to another port in the middle', args: ['--change-local-addr=300ms'] };

const isBound = (port: number) =>
  ['udp', 'udp6'].map((kind) => {
    const [, ...sockets] = readFileSync(`/proc/net/${kind}`, 'utf8').trim().split('\n');
    const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    return sockets.filter((line) => line.trim().split(/\s+/)[1]!.endsWith(end)).length;
  });

/** ngtcp2's server in the place of two instances; the second wants each client to prove its address first (Retry). */
async function startNgtcp2(
  directory: string,
  port: number,
  bytes: number,
): Promise<{ readonly sites: readonly Site[] } & AsyncDisposable> {
  const sites = [NAME_A, NAME_B].map((name) => ({
    name,
    certificate: createCertificate(name),
    data: randomBytes(bytes),
  }));
  const children: ChildProcess[] = [];
  for (const [index, { certificate, data }] of sites.entries()) {
    const files = join(directory, `ngtcp2-${index}`);
    const [key, cert] = [`${files}-key.pem`, `${files}-cert.pem`];
    await mkdir(files);
    await Promise.all([
      writeFile(key, certificate.key),
      writeFile(cert, certificate.cert),
      writeFile(join(files, 'data'), data),
    ]);
    const at = index === 0 ? ['::1'] : ['--validate-addr', '127.0.0.2'];
    const args = ['--quiet', `--htdocs=${files}`, ...at, String(port), key, cert];
    children.push(spawn(NGTCP2_SERVER, args, { stdio: ['ignore', 'ignore', 'ignore'] }));
  }
  await until(() => {
    for (const child of children) assert.equal(child.exitCode, null, `${NGTCP2_SERVER} has ended`);
    return isBound(port).every((count) => count > 0);
  });
  return { sites, [Symbol.asyncDispose]: async () => void (await Promise.all(children.map(endOf))) };
}

/** A gateway in front of what listens there, and a hosts file that leads to it. */
async function startPlace(directory: string, upstreamHttpsPort: number) {
  const handoverPath = join(directory, `listeners-${upstreamHttpsPort}.sock`);
  const { plane, port } = await startPlane({ upstreamHttpsPort, handoverPath });
  const hosts = join(directory, 'hosts');
  const names = [NAME_A, NAME_B, NAME_UNKNOWN];
  await writeFile(hosts, names.map((name) => `127.0.0.1 ${name}\n`).join(''));
  return { plane, place: { hosts, port } };
}

/**
 * ngtcp2's client fetches a file over HTTP/3 through the gateway, from Caddy and from ngtcp2's server, in each way that clients differ; a
 * name without a route is told at once.
 *
 * @param bytes of each file
 */
export async function checkNgtcp2(bytes: number, say: Say): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-http3-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [caddyPort, ownPort] = [await freePort(), await freePort()];
  const caddy = await startCaddy(directory, caddyPort, bytes);
  stack.defer(() => endOf(caddy.process));
  const toCaddy = await startPlace(directory, caddyPort);
  stack.use(toCaddy.plane);
  for (const how of WAYS) await download(toCaddy.place, caddy.sites[0]!, how, say);
  await download(toCaddy.place, caddy.sites[1]!, { what: 'the second name', args: [] }, say);
  const { said } = await request(toCaddy.place, NAME_UNKNOWN, []);
  assert.match(said, UNRECOGNIZED_NAME);
  const { outcomes, figures } = toCaddy.plane.stats().quic;
  assert.ok(outcomes.forwarded > WAYS.length && outcomes.unknown_name >= 1);
  assert.ok(figures.quicBytesToClients > (WAYS.length + 1) * bytes);
  say('ngtcp2, a name without a route: refused');

  const servers = stack.use(await startNgtcp2(directory, ownPort, bytes));
  const toNgtcp2 = await startPlace(directory, ownPort);
  stack.use(toNgtcp2.plane);
  await download(toNgtcp2.place, servers.sites[0]!, MOVE, say);
  await download(toNgtcp2.place, servers.sites[1]!, { what: 'after a Retry', args: [] }, say);
  assert.equal(toNgtcp2.plane.stats().quic.outcomes.moved, 1);
}
