import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { AppError } from '@skerry/protocol';
import { encodeQmpCommand, type QmpMessage, QmpParser } from './qmp-bytes.ts';

export type QmpEventHandler = (name: string, data: Readonly<Record<string, unknown>>) => void;

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** QEMU answers in milliseconds; a guest that hogs the machine may delay it. */
export const ANSWER_MS = 30_000;

/** A connection to one QEMU. QEMU serves one client at a time: a second one waits until the first is gone. */
export class QmpClient implements Disposable {
  readonly #socket: Socket;
  readonly #answerMs: number;
  readonly #parser = new QmpParser();
  readonly #pending = new Map<number, Pending>();
  readonly #greeting = Promise.withResolvers<void>();
  /** Resolves when the connection ends, for whatever reason. */
  readonly closed: Promise<void>;
  #onEvent: QmpEventHandler = () => {};
  #lastId = 0;

  private constructor(socket: Socket, answerMs: number) {
    this.#socket = socket;
    this.#answerMs = answerMs;
    this.closed = once(socket, 'close').then(
      () => this.#end(),
      () => this.#end(),
    );
    this.#greeting.promise.catch(() => {});
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const message of this.#parser.push(bytes)) this.#receive(message);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
  }

  /** Connects and leaves the negotiation mode. Rejects with the socket's error, or TIMED_OUT. @param answerMs how long QEMU may take */
  static async connect(path: string, onEvent: QmpEventHandler, answerMs = ANSWER_MS): Promise<QmpClient> {
    const socket = createConnection(path);
    const client = new QmpClient(socket, answerMs);
    client.#onEvent = onEvent;
    const timer = setTimeout(
      () => socket.destroy(new AppError('TIMED_OUT', 'QEMU sent no greeting')),
      answerMs,
    );
    try {
      await once(socket, 'connect');
      await client.#greeting.promise;
      await client.command('qmp_capabilities');
      return client;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a command and gives its `return`. Rejects with INTERNAL and QEMU's own words, or when the connection ends. */
  command(execute: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.#socket.destroyed)
      return Promise.reject(new AppError('INTERNAL', 'the connection to QEMU is closed'));
    const timer = setTimeout(() => {
      this.#pending.delete(id);
      reject(new AppError('TIMED_OUT', `QEMU did not answer ${execute}`));
    }, this.#answerMs);
    this.#pending.set(id, { resolve, reject });
    this.#socket.write(encodeQmpCommand(id, execute, args));
    return promise.finally(() => clearTimeout(timer));
  }

  #receive(message: QmpMessage): void {
    if (message.kind === 'greeting') this.#greeting.resolve();
    else if (message.kind === 'event') this.#onEvent(message.name, message.data);
    else if (message.id !== undefined) {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.kind === 'result') pending?.resolve(message.value);
      else pending?.reject(new AppError('INTERNAL', `QEMU refuses: ${message.description}`));
    }
  }

  #end(): void {
    const error = new AppError('INTERNAL', 'the connection to QEMU is closed');
    this.#greeting.reject(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
