import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@skerry/kit';
import { NAME_UNKNOWN } from '../dataplane/testing/suite/world.ts';
import { endOf, type Say, startCaddy } from './http3.ts';
import { download, MOVING, request, startNgtcp2, startPlace, UNRECOGNIZED_NAME, type Way } from './ngtcp2.ts';

/** ngtcp2's example programs, which Debian's ngtcp2-client and ngtcp2-server bring. */
export const NGTCP2_CLIENT = 'gtlsclient';
export const NGTCP2_SERVER = 'gtlsserver';
const INSTALLED = { client: [NGTCP2_CLIENT], server: [NGTCP2_SERVER] };
const QUIET = ['--quiet'];

const WAYS: readonly Way[] = [
  { what: 'as it comes', args: QUIET },
  { what: 'with P-256 alone', args: [...QUIET, '--groups=-GROUP-ALL:+GROUP-SECP256R1'] },
  { what: 'one datagram in fifty lost each way', args: [...QUIET, '--tx-loss=0.02', '--rx-loss=0.02'] },
];
/** It moves in the middle: the server's ids for that were told in packets that the gateway does not open. */
const MOVE = { what: 'a move to another port in the middle', args: [...QUIET, MOVING] };

/**
 * ngtcp2's client fetches a file over HTTP/3 through the gateway, from Caddy and from ngtcp2's server, in each way that clients differ; a
 * name without a route is told at once.
 *
 * @param bytes of each file of Caddy; those of ngtcp2's server have four times as many, so that the client is not done before it moves
 */
export async function checkNgtcp2(bytes: number, say: Say): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-http3-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [caddyPort, ownPort] = [await findFreePort(), await findFreePort()];
  const caddy = await startCaddy(directory, caddyPort, bytes);
  stack.defer(() => endOf(caddy.process));
  const toCaddy = await startPlace(INSTALLED, directory, caddyPort);
  stack.use(toCaddy.plane);
  for (const how of WAYS) await download(toCaddy.place, caddy.sites[0]!, how, say);
  await download(toCaddy.place, caddy.sites[1]!, { what: 'the second name', args: QUIET }, say);
  const { said } = await request(toCaddy.place, NAME_UNKNOWN, []);
  assert.match(said, UNRECOGNIZED_NAME);
  const { outcomes, figures } = toCaddy.plane.stats().quic;
  assert.ok(outcomes.forwarded > WAYS.length && outcomes.unknown_name >= 1);
  assert.ok(figures.quicBytesToClients > (WAYS.length + 1) * bytes);
  say('ngtcp2, a name without a route: refused');

  const servers = stack.use(
    await startNgtcp2({ programs: INSTALLED, directory, port: ownPort, bytes: 4 * bytes }),
  );
  const toNgtcp2 = await startPlace(INSTALLED, directory, ownPort);
  stack.use(toNgtcp2.plane);
  await download(toNgtcp2.place, servers.sites[0]!, MOVE, say);
  await download(toNgtcp2.place, servers.sites[1]!, { what: 'after a Retry', args: QUIET }, say);
  assert.equal(toNgtcp2.plane.stats().quic.outcomes.moved, 1);
}
