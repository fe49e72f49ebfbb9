import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type { RefusalsView } from '@skerry/protocol/api/gateway-refusals';
import { askRaw } from '../dataplane/testing/suite/http-client.ts';
import { openClient, readLeft, until } from '../dataplane/testing/suite/world.ts';
import { cryptoFrame, initialDatagram } from '../quic/testing/initials.ts';
import { KEY, Scene } from '../testing/scene.ts';
import { helloMessage, helloWire } from '../tls/testing/hello.ts';

/** What a stranger would like to have in a log. */
const EVIL = 'evil\u001b[2J"}\n{"level":60,"msg":"all is lost"';
/** Of a gateway that lives for less than a minute: it tells after the first refusal, and at its end. */
const LINES_MAX = 2 * 11;
const AT_ONCE = 100;
const NETWORKS = 1_500;
const HEAVY = 400;

const hostile = helloWire({ serverName: 'nobody.example' });

async function refuse(port: number, from: string, bytes: Uint8Array): Promise<void> {
  const client = await openClient(port, '127.0.0.1', from);
  client.write(bytes);
  await readLeft(client);
}

async function flood(port: number): Promise<void> {
  const clients = [
    ...Array.from({ length: NETWORKS }, (_, at) => `127.${1 + (at >> 8)}.${at & 255}.9`),
    ...Array.from({ length: HEAVY }, (_, at) => `127.200.7.${1 + (at % 250)}`),
  ];
  for (let at = 0; at < clients.length; at += AT_ONCE)
    await Promise.all(clients.slice(at, at + AT_ONCE).map((from) => refuse(port, from, hostile)));
}

interface Line {
  readonly msg: string;
  readonly network?: string;
  readonly refused: number;
  readonly reasons: Readonly<Record<string, number>>;
}

/** A gateway with its log, and what its operator is told. */
async function openScene(plane: string, more: Record<string, string> = {}) {
  const scene = await Scene.open({ SKERRY_GATEWAY_DATA_PLANE: plane, ...more });
  const said: string[] = [];
  scene.log = createLogger('gateway', 'info', { write: (line) => void said.push(line) });
  await scene.start();
  const [http, https] = scene.urls.map((url) => Number(new URL(url).port)) as [number, number];
  const refusals = async (limit = 5) => {
    const headers = { authorization: `Bearer ${KEY}` };
    const { body } = await scene.api(`/api/refusals?limit=${limit}`, { headers });
    return body as unknown as RefusalsView;
  };
  const lines = () =>
    said.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg.endsWith('were refused'));
  return { scene, said, http, https, refusals, lines };
}

const totalOf = ({ networks, others }: RefusalsView) =>
  networks.reduce((sum, { count }) => sum + count, others.count);

for (const plane of ['native', 'typescript'])
  describe(`who is refused, ${plane}`, () => {
    test('thousands of hostile hellos leave a few lines, which name the heaviest client', async () => {
      const { scene, https, refusals, lines } = await openScene(plane);
      await using _ = scene;
      await flood(https);
      await until(async () => totalOf(await refusals()) === NETWORKS + HEAVY);
      const view = await refusals();
      const heaviest = { network: '127.200.7.0/24', reasons: [{ reason: 'tls_unknown_name', count: HEAVY }] };
      assert.deepEqual(view.networks[0], { ...heaviest, count: HEAVY });
      assert.equal(view.networks.length, 5);
      assert.ok(Math.abs(view.since - Date.now() / 1000) < 600);
      await scene.stop();
      assert.ok(lines().length <= LINES_MAX, `${lines().length}`);
      const refused = lines().reduce((sum, line) => sum + line.refused, 0);
      assert.equal(refused, NETWORKS + HEAVY);
      const ofHeaviest = lines().filter(({ network }) => network === heaviest.network);
      assert.equal(
        ofHeaviest.reduce((sum, { reasons }) => sum + reasons.tls_unknown_name!, 0),
        HEAVY,
      );
    });

    test('plain HTTP is told of by its reasons, and nothing that a stranger writes is in the log', async () => {
      const { scene, http, https, refusals, said, lines } = await openScene(plane);
      await using _ = scene;
      await askRaw(http, `GET /${EVIL} HTTP/1.1\r\nHost: ${EVIL}\r\n\r\n`);
      await askRaw(http, 'GET /evil HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
      await askRaw(http, 'GET /evil HTTP/1.1\r\nHost: a"{evil\r\nConnection: close\r\n\r\n');
      await askRaw(http, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n');
      await refuse(https, '127.0.0.1', Buffer.from(EVIL));
      await refuse(https, '127.0.0.1', helloWire({ serverName: 'evil.example' }));
      await until(async () => totalOf(await refusals()) === 6);
      const reasons = Object.fromEntries(
        (await refusals()).networks[0]!.reasons.map(({ reason, count }) => [reason, count]),
      );
      assert.deepEqual(reasons, {
        http_invalid_parameters: 1,
        http_hostname_not_found: 1,
        http_invalid_host: 1,
        http_method_not_allowed: 1,
        tls_not_tls: 1,
        tls_unknown_name: 1,
      });
      const metrics = await (await fetch(`${scene.urls[2]}/metrics`)).text();
      for (const reason of ['invalid_parameters', 'hostname_not_found', 'invalid_host', 'method_not_allowed'])
        assert.match(
          metrics,
          new RegExp(`^skerry_gateway_http_refused_total\\{reason="${reason}"\\} 1$`, 'm'),
        );
      await scene.stop();
      assert.ok(!said.some((line) => line.includes('evil') || line.includes('all is lost')), said.join(''));
      assert.equal(
        lines().reduce((sum, line) => sum + line.refused, 0),
        6,
      );
    });

    test('only who has an API key is told', async () => {
      const { scene } = await openScene(plane);
      await using _ = scene;
      assert.equal((await scene.api('/api/refusals')).body.code, 'CREDENTIAL_REQUIRED');
      const headers = { authorization: 'Bearer wrong' };
      assert.equal((await scene.api('/api/refusals', { headers })).body.code, 'CREDENTIAL_REFUSED');
    });

    test('a client that has its share of connections is told of', async () => {
      const { scene, http, https, refusals } = await openScene(plane, {
        SKERRY_GATEWAY_MAX_CONNECTIONS_PER_CLIENT: '1',
      });
      await using _ = scene;
      const held = [await openClient(http, '127.0.0.1'), await openClient(https, '127.0.0.1')];
      await refuse(http, '127.0.0.1', Buffer.alloc(0));
      await refuse(https, '127.0.0.1', Buffer.alloc(0));
      const reasons = async () => (await refusals()).networks[0]?.reasons.map(({ reason }) => reason).sort();
      await until(async () => String(await reasons()) === 'http_client_limit,tls_client_limit');
      for (const socket of held) socket.destroy();
    });
  });

test('QUIC clients without a way are told of, and their datagrams that nobody asked for', async () => {
  const { scene, https, refusals } = await openScene('native');
  await using _ = scene;
  const client = createSocket('udp4').bind(0, '127.3.4.5');
  await once(client, 'listening');
  client.send(
    initialDatagram([cryptoFrame(0, helloMessage({ serverName: 'nobody.example' }))]),
    https,
    '127.0.0.1',
  );
  await once(client, 'message');
  client.send(Buffer.alloc(40, 0x41), https, '127.0.0.1');
  await until(async () => totalOf(await refusals()) === 2);
  assert.deepEqual((await refusals()).networks, [
    {
      network: '127.3.4.0/24',
      count: 2,
      reasons: [
        { reason: 'quic_stray', count: 1 },
        { reason: 'quic_unknown_name', count: 1 },
      ],
    },
  ]);
  client.close();
});
