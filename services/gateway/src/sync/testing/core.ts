import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { InstanceView } from '@skerry/protocol';

/** What a test says of an instance; the rest is made up, or as it was. */
export type SomeView = Partial<InstanceView> & { instance_id: string };

const SCHEDULED: Omit<InstanceView, 'instance_id'> = {
  owner: `0x${'0'.repeat(40)}`,
  name: 'web',
  description: '',
  cpu: 1,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ipv6: '',
  status: 'stopped',
  created_at: 1000,
  updated_at: 1000,
  ssh_key: '',
  firewall: { allowedPorts: [22] },
  desired: 'running',
  restart_id: null,
  node_id: null,
  node_address: null,
  phase: 'scheduled',
  reason: null,
};

/** Newest first; equal times by id. */
const inOrder = (a: SomeView, b: SomeView) =>
  (b.created_at ?? 0) - (a.created_at ?? 0) || (a.instance_id < b.instance_id ? -1 : 1);

/** What a cursor of the list says. */
interface Place {
  readonly page: number;
  readonly after?: SomeView | undefined;
}

/**
 * A core node reduced to what the gateway reads: the list of instances, page after page by cursor, and the event stream, resumable by
 * cursor. Spoken to over HTTP by the real client.
 */
export class TestingCore implements AsyncDisposable {
  readonly instances = new Map<string, SomeView>();
  readonly #events: string[] = [];
  readonly #streams = new Set<ServerResponse>();
  readonly #server = createServer((request, response) => this.#answer(request, response));
  /** Answers every list with this status. */
  failWith: number | undefined;
  /** Called before each page of the list is answered. */
  onPage: ((page: number) => void) | undefined;
  lists = 0;
  streamsOpened = 0;

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async open(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  /** An instance is new or different, and everybody hears of it. */
  put(view: SomeView): void {
    this.putQuietly(view);
    this.tell('instance', this.instances.get(view.instance_id));
  }

  /** As if the stream had lost it. */
  putQuietly(view: SomeView): void {
    this.instances.set(view.instance_id, { ...SCHEDULED, ...this.instances.get(view.instance_id), ...view });
  }

  tell(kind: string, data: unknown): void {
    const cursor = String(this.#events.length + 1);
    const event = JSON.stringify({ cursor, kind, time_ms: Date.now(), data });
    this.#events.push(`id: ${cursor}\nevent: ${kind}\ndata: ${event}\n\n`);
    for (const stream of this.#streams) stream.write(this.#events.at(-1));
  }

  /** Everything is gone, cursors start anew: another database. */
  forgetEverything(): void {
    this.instances.clear();
    this.#events.length = 0;
    this.breakStreams();
  }

  breakStreams(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://core');
    if (url.pathname === '/api/v0/events') this.#stream(url, response);
    else if (url.pathname === '/api/v0/instances') this.#list(url, response);
    else this.#one(url.pathname.split('/').at(-1)!, response);
  }

  #one(id: string, response: ServerResponse): void {
    const view = this.instances.get(id);
    response.setHeader('content-type', 'application/json');
    if (view) return void response.end(JSON.stringify({ ...SCHEDULED, ...view }));
    response.statusCode = 404;
    response.end(JSON.stringify({ error: 'none', status: 'error', code: 'INSTANCE_NOT_FOUND' }));
  }

  #list(url: URL, response: ServerResponse): void {
    this.lists++;
    const { page, after }: Place = JSON.parse(url.searchParams.get('cursor') ?? '{"page":1}');
    const limit = Number(url.searchParams.get('limit'));
    const cursor = String(this.#events.length);
    this.onPage?.(page);
    response.setHeader('content-type', 'application/json');
    if (this.failWith !== undefined) {
      response.statusCode = this.failWith;
      response.end('{}');
      return;
    }
    const all = [...this.instances.values()].sort(inOrder);
    const total_pages = Math.max(1, Math.ceil(all.length / limit));
    const instances = all.filter((one) => !after || inOrder(after, one) < 0).slice(0, limit);
    const next: Place = { page: page + 1, after: instances.at(-1) };
    response.end(
      JSON.stringify({
        instances,
        pagination: { total: all.length, page, per_page: limit, total_pages },
        next_cursor: instances.length < limit ? null : JSON.stringify(next),
        cursor,
      }),
    );
  }

  #stream(url: URL, response: ServerResponse): void {
    const cursor = Number(url.searchParams.get('cursor') ?? 0);
    if (cursor > this.#events.length) {
      response.statusCode = 400;
      response.end(JSON.stringify({ error: 'no such cursor', status: 'error', code: 'INVALID_CURSOR' }));
      return;
    }
    this.streamsOpened++;
    response.setHeader('content-type', 'text/event-stream');
    response.write(': hello\n\n');
    for (const event of this.#events.slice(cursor)) response.write(event);
    this.#streams.add(response);
    response.once('close', () => this.#streams.delete(response));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakStreams();
    this.#server.closeAllConnections();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }
}
