import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NativeDataPlane } from '../dataplane/native/plane.ts';
import { createCertificate } from '../dataplane/testing/suite/certificate.ts';
import { NAME_A, NAME_B, NAME_UNKNOWN, until } from '../dataplane/testing/suite/world.ts';
import { endOf, type Say, type Site, startPlane } from './http3.ts';

/** ngtcp2's example programs: the words that start its client and its server. */
export interface Ngtcp2 {
  readonly client: readonly string[];
  readonly server: readonly string[];
}

/** The client names in its hello the host that it connects to, so the names have to lead to loopback: in a mount namespace of its own. */
const AT_LOOPBACK = ['--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"'];
/** It waits for as long itself where nobody answers. */
const LIMIT_MS = 180_000;
const MAX_SAID = 4 * 1024 * 1024;
/** RFC 9001 §4.8: the alert unrecognized_name, as the gateway refuses a name without a route. */
export const UNRECOGNIZED_NAME = /0x(0*)170/;

/** Which client goes where. */
export interface Place {
  readonly programs: Ngtcp2;
  /** A hosts file (hosts(5)). */
  readonly hosts: string;
  readonly port: number;
}

interface Run {
  readonly code: number | null;
  readonly said: string;
}

/** One request of ngtcp2's client, as root. */
export async function request(
  { programs, hosts, port }: Place,
  name: string,
  args: readonly string[],
): Promise<Run> {
  const words = [...programs.client, ...args, name, String(port), `https://${name}/data`];
  const child = spawn('unshare', [...AT_LOOPBACK, hosts, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const hear = (chunk: Buffer) => {
    said = (said + chunk).slice(-MAX_SAID);
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

/** A way to fetch a file: in words, and in arguments of the client. */
export interface Way {
  readonly what: string;
  readonly args: readonly string[];
}

/** Makes the client move to another port a while after its handshake, which a busy machine may not have confirmed at once (RFC 9000 §9.1). */
export const MOVING = '--change-local-addr=100ms';

/** Fetches the file of a site, which has to come as it is. Gives what the client said. */
export async function download(place: Place, { name, data }: Site, how: Way, say: Say): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-ngtcp2-'));
  try {
    const sinceMs = performance.now();
    const always = ['--exit-on-all-streams-close', `--download=${directory}`];
    const { code, said } = await request(place, name, [...always, ...how.args]);
    assert.equal(code, 0, `${how.what}: ${said.slice(-2_000)}`);
    const came = await readFile(join(directory, 'data'));
    assert.ok(data.equals(came), `${how.what}: ${came.length} bytes came; ${said.slice(-2_000)}`);
    say(
      `ngtcp2, ${how.what}: ${data.length} bytes in ${Math.round(performance.now() - sinceMs)} ms, the same`,
    );
    return said;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const isBound = (port: number) =>
  ['udp', 'udp6'].map((kind) => {
    const [, ...sockets] = readFileSync(`/proc/net/${kind}`, 'utf8').trim().split('\n');
    const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    return sockets.filter((line) => line.trim().split(/\s+/)[1]!.endsWith(end)).length;
  });

export interface Ngtcp2Options {
  readonly programs: Ngtcp2;
  readonly directory: string;
  readonly port: number;
  /** Of each file. */
  readonly bytes: number;
  /** More arguments of each server. */
  readonly args?: readonly string[];
}

/** ngtcp2's server in the place of two instances; the second wants each client to prove its address first (Retry). */
export async function startNgtcp2({
  programs,
  directory,
  port,
  bytes,
  args = [],
}: Ngtcp2Options): Promise<{ readonly sites: readonly Site[] } & AsyncDisposable> {
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
      writeFile(join(files, 'index.html'), `<title>${sites[index]!.name}</title>`),
    ]);
    const at = index === 0 ? ['::1'] : ['--validate-addr', '127.0.0.2'];
    const [program = '', ...words] = programs.server;
    const all = [...words, ...args, '--quiet', `--htdocs=${files}`, ...at, String(port), key, cert];
    children.push(spawn(program, all, { stdio: ['ignore', 'ignore', 'ignore'] }));
  }
  await until(() => {
    for (const child of children) assert.equal(child.exitCode, null, `${child.spawnfile} has ended`);
    return isBound(port).every((count) => count > 0);
  });
  return { sites, [Symbol.asyncDispose]: async () => void (await Promise.all(children.map(endOf))) };
}

/** A gateway in front of what listens there, and how a client comes to it. */
export async function startPlace(
  programs: Ngtcp2,
  directory: string,
  upstreamHttpsPort: number,
): Promise<{ readonly plane: NativeDataPlane; readonly place: Place }> {
  const handoverPath = join(directory, `listeners-${upstreamHttpsPort}.sock`);
  const { plane, port } = await startPlane({ upstreamHttpsPort, handoverPath });
  const hosts = join(directory, 'hosts');
  const names = [NAME_A, NAME_B, NAME_UNKNOWN];
  await writeFile(hosts, names.map((name) => `127.0.0.1 ${name}\n`).join(''));
  return { plane, place: { programs, hosts, port } };
}
