import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '@skerry/kit';
import { NAME_UNKNOWN } from '../dataplane/testing/suite/world.ts';
import { checkFile, checkRefusal, endOf, openSite, type Say, startBrowser, startCaddy } from './http3.ts';
import {
  download,
  MOVING,
  type Ngtcp2,
  request,
  startNgtcp2,
  startPlace,
  UNRECOGNIZED_NAME,
  type Way,
} from './ngtcp2.ts';

/** The ngtcp2 of Debian 12 knows a draft of version 2 only (0x709a50c4). */
const SUITE = 'trixie';
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';
const LOADER = 'usr/lib64/ld-linux-x86-64.so.2';
/** What the client says is a line and more for each packet. */
const LOGGED_BYTES = 256 * 1024;
const V1 = '0x00000001';
const V2 = '0x6b3343cf';
/** As Chromium calls HTTP/3 in packets of version 2. */
const CHROMIUM_V2 = 'h3/quic2draft08';

/** ngtcp2's programs of a newer Debian, unpacked there with all that they need. */
async function unpackNgtcp2(root: string): Promise<Ngtcp2> {
  const packages = '--include=ngtcp2-client,ngtcp2-server';
  await promisify(execFile)('mmdebstrap', ['--quiet', '--variant=extract', packages, SUITE, root]);
  const load = [join(root, LOADER), '--library-path', join(root, LIBRARIES)];
  return {
    client: [...load, join(root, 'usr/bin/gtlsclient')],
    server: [...load, join(root, 'usr/sbin/gtlsserver')],
  };
}

const BRIEF = ['--no-quic-dump', '--no-http-dump'];
const FROM_THE_FIRST = [...BRIEF, '--version=v2'];
const WAYS: readonly Way[] = [
  { what: 'version 2 from the first packet on', args: FROM_THE_FIRST },
  {
    what: 'version 1, which the server changes to 2 (RFC 9368)',
    args: [...BRIEF, '--version=v1', '--available-versions=v2,v1'],
  },
  {
    what: 'version 2, one datagram in fifty lost each way',
    args: [...FROM_THE_FIRST, '--tx-loss=0.02', '--rx-loss=0.02'],
  },
];
const AFTER_RETRY: Way = { what: 'version 2 after a Retry', args: FROM_THE_FIRST };
const MOVE: Way = {
  what: 'version 2 and a move to another port in the middle',
  args: ['--quiet', '--version=v2', MOVING],
};
const NEGOTIATED: Way = {
  what: 'version 2, which the instance does not know',
  args: [...FROM_THE_FIRST, '--preferred-versions=v2,v1'],
};

/** The version that both ends have agreed on, in the client's own words. */
const versionIn = (said: string) => /the negotiated version is (0x[0-9a-f]{8})/.exec(said)?.[1];

interface Scene {
  readonly programs: Ngtcp2;
  readonly directory: string;
  readonly say: Say;
}

/** Between a client and a server that both know version 2. */
async function checkNgtcp2({ programs, directory, say }: Scene): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const port = await findFreePort();
  const args = ['--preferred-versions=v2,v1'];
  const servers = await startNgtcp2({ programs, directory, port, bytes: LOGGED_BYTES, args });
  const [site, wary] = stack.use(servers).sites;
  const { plane, place } = await startPlace(programs, directory, port);
  stack.use(plane);
  for (const how of WAYS) assert.equal(versionIn(await download(place, site!, how, say)), V2, how.what);
  assert.equal(versionIn(await download(place, wary!, AFTER_RETRY, say)), V2);
  const { said } = await request(place, NAME_UNKNOWN, FROM_THE_FIRST);
  assert.match(said, UNRECOGNIZED_NAME);
  say('version 2, a name without a route: refused');
}

/** Caddy 2.6 knows version 1 only, and says so. */
async function checkNegotiation({ programs, directory, say }: Scene): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const port = await findFreePort();
  const caddy = await startCaddy(directory, port, LOGGED_BYTES);
  stack.defer(() => endOf(caddy.process));
  const { plane, place } = await startPlace(programs, directory, port);
  stack.use(plane);
  assert.equal(versionIn(await download(place, caddy.sites[0]!, NEGOTIATED, say)), V1);
}

/** Chromium is made to begin with version 2, and a client of ngtcp2 moves. */
async function checkLarge({ programs, directory, say }: Scene, bytes: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const port = await findFreePort();
  const servers = stack.use(await startNgtcp2({ programs, directory, port, bytes }));
  const { plane, place } = await startPlace(programs, directory, port);
  stack.use(plane);
  // First: who moves can be followed only while all flows of its address lead to one instance.
  await download(place, servers.sites[0]!, MOVE, say);
  assert.equal(plane.stats().quic.outcomes.moved, 1);
  const browser = await startBrowser(place.port, servers, '--quic-version=RFCv2');
  stack.defer(() => browser.close());
  for (const site of servers.sites) await checkFile(await openSite(browser, site), site, say, CHROMIUM_V2);
  await checkRefusal(browser, NAME_UNKNOWN, say);
}

/**
 * Chromium and ngtcp2's client fetch files over QUIC version 2 (RFC 9369) through the gateway: from the first packet on, changed to by the
 * server, after a Retry, with losses, and while moving. Where the instance knows version 1 only, its answer leads there.
 *
 * @param bytes of the files that Chromium fetches
 */
export async function checkVersion2(bytes: number, say: Say): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-http3-'));
  const at = async (name: string) => {
    await mkdir(join(directory, name));
    return join(directory, name);
  };
  try {
    const programs = await unpackNgtcp2(await at(SUITE));
    await checkNgtcp2({ programs, directory: await at('small'), say });
    await checkNegotiation({ programs, directory: await at('caddy'), say });
    await checkLarge({ programs, directory: await at('large'), say }, bytes);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
