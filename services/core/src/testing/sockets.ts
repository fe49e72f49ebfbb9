import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { type ClientOptions, WebSocket } from 'ws';

/** A message as it came over a WebSocket. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
export type Frame = any;

/** A client of a WebSocket, with all that it was sent. */
export class TestSocket {
  readonly client: WebSocket;
  readonly frames: Frame[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  #look: () => void = () => {};

  private constructor(url: string, options: ClientOptions) {
    this.client = new WebSocket(url.replace(/^http/, 'ws'), { perMessageDeflate: false, ...options });
    this.client.on('message', (data, isBinary) => {
      if (isBinary) throw new Error('a frame is no text');
      this.frames.push(JSON.parse(String(data)));
      this.#look();
    });
    this.closed = once(this.client, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
    this.client.on('error', () => {});
  }

  /** @returns the refusal, where it is refused */
  static async tryOpen(
    url: string,
    options: ClientOptions = {},
  ): Promise<TestSocket | { status: number; headers: IncomingMessage['headers']; body: Frame }> {
    const socket = new TestSocket(url, options);
    const opened = once(socket.client, 'open').then(() => socket);
    const refused = once(socket.client, 'unexpected-response').then(async ([, response]) => {
      const { statusCode, headers } = response as IncomingMessage;
      return { status: statusCode!, headers, body: await json(response) };
    });
    return Promise.race([opened, refused]);
  }

  static async open(url: string, options: ClientOptions = {}): Promise<TestSocket> {
    const opened = await TestSocket.tryOpen(url, options);
    if (opened instanceof TestSocket) return opened;
    throw new Error(`${opened.status} ${JSON.stringify(opened.body)}`);
  }

  /** Resolves when it is so, looked at after each frame. */
  until(isSo: (frames: readonly Frame[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (isSo(this.frames)) resolve();
      };
      this.#look();
    });
  }

  /** The item hashes of what came. */
  get hashes(): string[] {
    return this.frames.map((frame) => frame.item_hash);
  }

  close(): void {
    this.client.terminate();
  }
}
