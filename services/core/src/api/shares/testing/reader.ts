import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';

/** Who reads an answer, as far as its place goes: what its connection takes, and what waits there, are set by hand. */
export class TestReader {
  isEnded = false;
  readonly socket = {
    bytesWritten: 0,
    writableLength: 1,
    destroy: () => {
      this.isEnded = true;
      this.leave();
    },
  };
  readonly reply: FastifyReply;
  /** The answer: what of it waits behind another one of its connection. */
  readonly raw = Object.assign(new EventEmitter(), { writableLength: 0 });

  /** @param client told as the header x-client */
  constructor(client: string) {
    const request = { raw: { socket: this.socket }, headers: { 'x-client': client } };
    this.reply = { raw: this.raw, log: { debug() {} }, request } as unknown as FastifyReply;
  }

  /** Bytes that leave for the kernel, beside what waits. */
  take(bytes: number): void {
    this.socket.bytesWritten += bytes;
  }

  leave(): void {
    this.raw.emit('close');
  }
}
