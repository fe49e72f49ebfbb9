import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type InstanceStatusContent,
  type InstanceView,
  NETWORK_POST,
  type NetworkEvent,
  type NodeContent,
  nodeIdOf,
  parseInstanceStatusContent,
  parseNodeContent,
  verifyEnvelope,
} from '@skerry/protocol';

/**
 * The few paths of a core node that a compute node speaks to, for tests of this package alone: a service's tests may not
 * import another service. Messages are verified by the real rules; the whole network is tested in `devnet`.
 */
export class StandInCore implements AsyncDisposable {
  readonly instances = new Map<string, InstanceView>();
  readonly statuses: InstanceStatusContent[] = [];
  readonly nodes = new Map<string, NodeContent>();
  readonly #events: NetworkEvent[] = [];
  readonly #streams = new Set<ServerResponse>();
  #server: Server | undefined;
  #port = 0;
  #changed = Promise.withResolvers<void>();

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch((error: Error) => {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: error.message, status: 'error', code: 'INVALID_CONTENT' }));
      });
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  /** Goes away as a killed core node does; `start` brings it back on the same port, with all it knew. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const stream of this.#streams) stream.destroy();
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Changes an instance and tells everybody. */
  set(view: InstanceView): void {
    this.instances.set(view.instance_id, view);
    const cursor = String(this.#events.length + 1);
    const event: NetworkEvent = { cursor, kind: 'instance', time_ms: Date.now(), data: view };
    this.#events.push(event);
    for (const stream of this.#streams) writeEvent(stream, event);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  change(id: string, changes: Partial<InstanceView>): void {
    this.set({ ...this.get(id), ...changes });
  }

  get(id: string): InstanceView {
    const view = this.instances.get(id);
    if (!view) throw new Error(`no instance ${id}`);
    return view;
  }

  /** Resolves when an instance fits; rejects at the deadline with what it was instead. */
  async until(id: string, fits: (view: InstanceView) => boolean, deadlineMs: number): Promise<InstanceView> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const fail = () =>
      reject(new Error(`not in ${deadlineMs} ms; the instance is ${JSON.stringify(this.instances.get(id))}`));
    const timer = setTimeout(fail, deadlineMs);
    try {
      while (!fits(this.get(id))) await Promise.race([this.#changed.promise, late]);
      return this.get(id);
    } finally {
      clearTimeout(timer);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    const path = pathname.replace('/api/v0', '');
    if (request.method === 'POST' && path === '/messages')
      return sendJson(response, 200, await this.#accept(await readBody(request)));
    if (path === '/events') return this.#stream(response, Number(searchParams.get('cursor') ?? 0));
    if (path === '/instances') {
      const all = [...this.instances.values()].filter((view) => view.node_id === searchParams.get('node_id'));
      const pagination = { total: all.length, page: 1, per_page: 100, total_pages: 1 };
      return sendJson(response, 200, { instances: all, pagination, cursor: String(this.#events.length) });
    }
    const view = this.instances.get(path.replace('/instances/', ''));
    if (view) return sendJson(response, 200, view);
    return sendJson(response, 404, { error: 'none', status: 'error', code: 'INSTANCE_NOT_FOUND' });
  }

  async #accept(body: string): Promise<unknown> {
    const { sender, content, itemHash } = verifyEnvelope(body, Math.floor(Date.now() / 1000));
    const post = content as unknown as { type: string; content: unknown };
    if (post.type === NETWORK_POST.node) this.nodes.set(nodeIdOf(sender), parseNodeContent(post.content));
    if (post.type === NETWORK_POST.instanceStatus)
      this.#observe(sender, parseInstanceStatusContent(post.content));
    return { item_hash: itemHash, status: 'success' };
  }

  #observe(sender: string, status: InstanceStatusContent): void {
    this.statuses.push(status);
    const view = this.instances.get(status.instance_id);
    if (view?.node_id !== nodeIdOf(sender)) return;
    const running = status.phase === 'running' ? 'running' : 'stopped';
    this.set({ ...view, phase: status.phase, status: running, reason: status.reason });
  }

  #stream(response: ServerResponse, cursor: number): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    for (const event of this.#events.slice(cursor)) writeEvent(response, event);
  }
}

function writeEvent(response: ServerResponse, event: NetworkEvent): void {
  response.write(`id: ${event.cursor}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  return body;
}
