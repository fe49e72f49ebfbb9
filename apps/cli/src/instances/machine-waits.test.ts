import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { BackupView } from '@skerry/protocol/api/compute/machines';
import { type WebSocket, WebSocketServer } from 'ws';
import { followLogs, waitForBackup } from './machine-waits.ts';

const backup = (state: BackupView['state'], message?: string): BackupView => ({
  ...{ backup_id: 'b', state, size: null, checksum: null, download_url: null, volumes: [] },
  ...{ created_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-02T00:00:00Z' },
  reason: message === undefined ? null : { code: 'DISK_FULL', message },
});
const waiting = (backups: BackupView[], limitMs?: number) =>
  waitForBackup({ url: 'http://node', listBackups: () => Promise.resolve(backups) }, 'b', limitMs);

test('a backup is waited for until it is made, has failed, is gone, or took too long, and each is told', async () => {
  assert.equal((await waiting([backup('done')])).state, 'done');
  await assert.rejects(waiting([backup('failed', 'full')]), {
    code: 'UPSTREAM_UNAVAILABLE',
    message: /full/,
  });
  await assert.rejects(waiting([]), { code: 'BACKUP_NOT_FOUND' });
  await assert.rejects(waiting([backup('running')], 0), {
    code: 'TIMED_OUT',
    message: /node .* it is running/,
  });
});

describe('following a log', () => {
  const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const sockets = new Set<Socket>();
  /** What the node sends once it has taken the connection; undefined: it never does. */
  let frames: Buffer[] | undefined;
  const node = createServer().on('upgrade', ({ headers }, socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
    if (!frames) return;
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${GUID}`).digest('base64');
    socket.write(
      `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.end(Buffer.concat(frames));
  });
  let url = '';
  before(async () => {
    await once(node.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`;
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    node.close();
  });
  const text = (value: object) => {
    const bytes = Buffer.from(JSON.stringify(value));
    return Buffer.concat([Buffer.from([0x81, bytes.length]), bytes]);
  };
  const close = (code: number, why = '') =>
    Buffer.from([0x88, 2 + why.length, code >> 8, code & 255, ...Buffer.from(why)]);
  const follow = async (limitMs?: number) => {
    const lines: string[] = [];
    const openLogs = async () => ({ url: url.replace('http', 'ws'), frame: '{}' });
    const failure = await followLogs({ url, openLogs }, ({ MESSAGE }) => lines.push(MESSAGE), limitMs).catch(
      (error) => error,
    );
    return { lines, code: failure.code, message: failure.message };
  };

  test('a node that never begins is waited for no longer than a limit', async () => {
    frames = undefined;
    const { code, message } = await follow(10);
    assert.deepEqual([code, /did not begin/.test(message)], ['TIMED_OUT', true]);
  });

  test('a connection that dies without a word ends it', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong: false });
    context.after(() => {
      for (const one of server.clients) one.terminate();
      server.close();
    });
    await once(server, 'listening');
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const printed = Promise.withResolvers<void>();
    const openLogs = async () => ({ url: at.replace('http', 'ws'), frame: '{}' });
    const connected = once(server, 'connection');
    const followed = followLogs({ url: at, openLogs }, () => printed.resolve()).catch((error) => error);
    const [reader] = (await connected) as [WebSocket];
    await once(reader, 'message');
    const asked = once(reader, 'ping');
    context.mock.timers.tick(30_000);
    await asked;
    reader.pong();
    reader.send(JSON.stringify({ type: 'stdout', message: 'a line' }));
    await printed.promise;
    const again = once(reader, 'ping');
    context.mock.timers.tick(30_000);
    await again;
    // From here on the node is away, as behind a wall that lets nothing through.
    context.mock.timers.tick(30_000);
    const { code, message } = await followed;
    assert.equal(code, 'UPSTREAM_UNAVAILABLE');
    assert.match(message, /nothing came for 30 s, the connection was lost/);
  });

  test('what ends it is told, and is no success', async () => {
    const line = text({ type: 'stdout', message: 'a line' });
    frames = [text({ status: 'connected' }), line, close(1013)];
    const slow = await follow();
    assert.deepEqual([slow.lines, slow.code], [['a line'], 'UPSTREAM_UNAVAILABLE']);
    assert.match(slow.message, /faster than they were read/);
    frames = [text({ status: 'connected' }), close(1013, 'the place goes to an owner that has none')];
    assert.match((await follow()).message, /"the place goes to an owner that has none"/);
    frames = [text({ status: 'failed', reason: 'not yours' }), close(1008)];
    assert.deepEqual(await follow(), { lines: [], code: 'NOT_PERMITTED', message: 'not yours' });
    frames = [text({ status: 'failed', reason: 'no room', code: 'INSTANCE_NOT_READY' }), close(1008)];
    assert.deepEqual(await follow(), { lines: [], code: 'INSTANCE_NOT_READY', message: 'no room' });
    frames = [text({ status: 'failed', reason: 'not yours', code: 'toString' }), close(1008)];
    assert.equal((await follow()).code, 'NOT_PERMITTED');
  });
});
