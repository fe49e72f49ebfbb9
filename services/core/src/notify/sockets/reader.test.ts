import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { BACKLOG_BYTES, Connection } from './connection.ts';
import { Piece, Reader } from './reader.ts';

/** A connection that takes everything at once, but tells of it when it is asked to. */
function fake() {
  const written: string[] = [];
  const done: (() => void)[] = [];
  const state = { unread: 0, isLetGo: false };
  const connection = {
    get unread() {
      return state.unread;
    },
    write(frames: Buffer, onDone?: () => void) {
      written.push(String(frames));
      if (onDone) done.push(onDone);
    },
    letGo() {
      state.isLetGo = true;
    },
    onClose() {},
  } as unknown as Connection;
  return { connection, written, state, goOut: () => done.splice(0).forEach((tell) => void tell()) };
}

const piece = (...seqs: number[]) => new Piece(seqs.map((seq) => ({ seq, frame: Buffer.from(`${seq} `) })));
const begun = (seq: number, ...frames: string[]) => ({ seq, frames: frames.map((one) => Buffer.from(one)) });

describe('a reader', () => {
  test('gets its history first, then what came meanwhile and is not in it', () => {
    const { connection, written, goOut } = fake();
    const reader = new Reader(() => assert.fail('it goes on'));
    reader.give(piece(4, 5));
    reader.begin(connection, begun(5, 'a ', 'b '));
    reader.give(piece(6, 7));
    assert.equal(written.join(''), 'a b ');
    goOut();
    reader.give(piece(8));
    assert.equal(written.join(''), 'a b 6 7 8 ');
    assert.equal(reader.unread, 0);
  });

  test('gets nothing again where it read the log before the others were told', () => {
    const { connection, written } = fake();
    const reader = new Reader(() => assert.fail('it goes on'));
    reader.begin(connection, begun(5));
    for (const one of [piece(3), piece(4, 5, 6), piece(7, 8)]) reader.give(one);
    assert.equal(written.join(''), '6 7 8 ');
  });

  test('is let go once, with too much before its history is there or too much unread', () => {
    const long = new Piece([{ seq: 1, frame: Buffer.alloc(BACKLOG_BYTES + 1) }]);
    const ends: boolean[] = [];
    const early = new Reader((isLetGo) => ends.push(isLetGo));
    early.give(long);
    early.end();
    assert.deepEqual([ends, early.isOver, early.unread], [[true], true, 0]);
    const { connection, written, state } = fake();
    const late = new Reader((isLetGo) => ends.push(isLetGo));
    late.begin(connection, begun(0));
    state.unread = BACKLOG_BYTES + 1;
    late.give(piece(1));
    late.give(piece(2));
    assert.deepEqual([ends, state.isLetGo, written], [[true, true], true, []]);
  });
});

test('whoever sends pongs unasked answers no ping, and is gone at the next', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const open = async (autoPong: boolean) => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong });
    const [[accepted, request]] = (await Promise.all([once(server, 'connection'), once(client, 'open')])) as [
      [WebSocket, { socket: Socket }],
      unknown,
    ];
    const connection = new Connection(accepted, request.socket);
    const { promise: heard, resolve } = Promise.withResolvers<void>();
    // The one that nobody asked for comes last.
    accepted.on('pong', (data) => data.length === 0 && resolve());
    connection.ping();
    await once(client, 'ping');
    client.pong();
    await heard;
    connection.ping();
    return { client, connection };
  };
  const [polite, feigning] = [await open(true), await open(false)];
  assert.deepEqual([polite.connection.isOpen, feigning.connection.isOpen], [true, false]);
  polite.client.terminate();
  server.close();
});
