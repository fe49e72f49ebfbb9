import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** Frames of a server, which are not masked (RFC 6455, 5.2). */
const TEXT = 1;
const PING = 9;
const PONG = 0x8a;
const MASKED = 0x80;
const MEDIUM = 126;
const LONG = 127;
const HEAD_END = '\r\n\r\n';

interface ReaderEvents {
  onOpen(): void;
  onText(text: Buffer): void;
  onEnd(): void;
}

/** One WebSocket that reads: as little of a client as there can be, since thousands of them share a process. */
export class SocketReader {
  readonly #socket: Socket;
  readonly #events: ReaderEvents;
  #rest: Buffer = Buffer.alloc(0);
  #isOpen = false;

  constructor(port: number, path: string, events: ReaderEvents) {
    this.#events = events;
    this.#socket = connect({ port, host: '127.0.0.1' });
    const key = randomBytes(16).toString('base64');
    this.#socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}${HEAD_END}`,
    );
    this.#socket.on('data', (data) => this.#read(data as Buffer));
    this.#socket.on('error', () => {});
    this.#socket.once('close', () => events.onEnd());
  }

  pause(): void {
    this.#socket.pause();
  }

  #read(data: Buffer): void {
    let rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    if (!this.#isOpen) {
      const end = rest.indexOf(HEAD_END);
      if (end < 0) {
        this.#rest = rest;
        return;
      }
      const line = rest.toString('latin1', 0, rest.indexOf('\r\n'));
      if (!line.includes(' 101 ')) throw new Error(`no WebSocket: ${rest.toString('utf8', 0, 600)}`);
      this.#isOpen = true;
      rest = rest.subarray(end + HEAD_END.length);
      this.#events.onOpen();
    }
    for (let frame = frameIn(rest); frame; frame = frameIn(rest)) {
      this.#take(frame.opcode, rest.subarray(frame.from, frame.to));
      rest = rest.subarray(frame.to);
    }
    // A copy: what was read of others need not stay for it.
    this.#rest = Buffer.from(rest);
  }

  #take(opcode: number, payload: Buffer): void {
    if (opcode === TEXT) this.#events.onText(payload);
    else if (opcode === PING) this.#socket.write(pongOf(payload));
  }
}

/** With what the ping has (RFC 6455, 5.5.3): the node ends who does not read what it asks. Masked by zeros, which change nothing. */
const pongOf = (payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from([PONG, MASKED | payload.length, 0, 0, 0, 0]), payload]);

function frameIn(bytes: Buffer): { opcode: number; from: number; to: number } | undefined {
  if (bytes.length < 2) return undefined;
  const opcode = bytes[0]! & 0x0f;
  const short = bytes[1]!;
  const from = short === MEDIUM ? 4 : short === LONG ? 10 : 2;
  if (bytes.length < from) return undefined;
  const length =
    short === MEDIUM ? bytes.readUInt16BE(2) : short === LONG ? Number(bytes.readBigUInt64BE(2)) : short;
  return bytes.length < from + length ? undefined : { opcode, from, to: from + length };
}
