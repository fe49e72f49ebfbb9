import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test } from 'node:test';
import type { CreateDataPlane, HttpAccessRecord } from '../../port.ts';
import { ask, askRaw, serveHttp } from './http-client.ts';
import { NAME_A, NAME_B, NAME_DEAD, NAME_UNKNOWN, openClient, openWorld, readBytes, until } from './world.ts';

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n';

export function httpJournalSuite(create: CreateDataPlane): void {
  test('every HTTP request is counted by its class and outcome, and told of', async () => {
    const told: HttpAccessRecord[] = [];
    const access = { every: 1, tell: () => {}, tellHttp: (record: HttpAccessRecord) => told.push(record) };
    await using world = await openWorld((options) => create({ ...options, access }));
    const server = serveHttp(world.httpA, (_request, response) => response.end('A'));
    server.on('upgrade', (_request, socket) => socket.end(SWITCH));
    world.httpB.handle = (socket) => socket.destroy();
    const { http } = world.ports;
    await ask(http, NAME_A, { path: '/secret?token=1' });
    await ask(http, NAME_A, { path: '/.well-known/acme-challenge/x' });
    await ask(http, NAME_UNKNOWN, { method: 'POST' });
    await ask(http, NAME_DEAD);
    await ask(http, NAME_B);
    await askRaw(http, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n');
    const upgrading = await openClient(http);
    upgrading.end(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
    await readBytes(upgrading, SWITCH.length);
    upgrading.destroy();
    const session = connect(`http://127.0.0.1:${http}`);
    const stream = session.request({ ':authority': NAME_UNKNOWN });
    await once(stream.resume(), 'close');
    session.destroy();
    const leaving = await openClient(http);
    serveHttp(world.httpB, () => void leaving.resetAndDestroy());
    leaving.write(`GET / HTTP/1.1\r\nHost: ${NAME_B}\r\n\r\n`);

    await until(() => told.length === 9);
    const { httpCounts } = await world.plane.stats();
    const zero = { forwarded: 0, not_routed: 0, failed: 0, refused: 0, gone: 0 };
    assert.deepEqual(httpCounts, {
      http1: { forwarded: 1, not_routed: 1, failed: 2, refused: 1, gone: 1 },
      http2: { ...zero, not_routed: 1 },
      upgrade: { ...zero, forwarded: 1 },
      acme_challenge: { ...zero, forwarded: 1 },
    });
    assert.deepEqual(
      { ...told[0]!, startedUnixMs: 0, durationMs: 0 },
      {
        startedUnixMs: 0,
        durationMs: 0,
        class: 'http1',
        clientAddress: '127.0.0.1',
        method: 'GET',
        authority: NAME_A,
        status: 200,
        outcome: 'forwarded',
      },
    );
    assert.ok(!JSON.stringify(told).includes('secret'));
    const statuses = told.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [101, 200, 200, 400, 404, 404, 502, 502, null]);
  });
}
