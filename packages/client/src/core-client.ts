import type {
  InstanceView,
  MessageStatusView,
  MessageView,
  NetworkEvent,
  PaginationView,
  SubmitView,
  VrfAnswerView,
  VrfClaimBody,
  VrfVerdictView,
} from '@skerry/protocol';
import { AppError, LIMITS } from '@skerry/protocol';
import { type WatchOptions, watchEvents } from './events.ts';
import { type MessageDraft, signMessage } from './message.ts';
import { request, requestJson } from './request.ts';
import type { Signer } from './signer.ts';

export interface CoreClientOptions {
  /** Where the core node is, without `/api/v0`. */
  readonly url: string;
  /** Needed for everything that changes something. */
  readonly signer?: Signer | undefined;
  /** Ends every request of this client. */
  readonly signal?: AbortSignal | undefined;
}

type Query = Readonly<Record<string, string | number | undefined>>;

export interface InstanceList {
  instances: InstanceView[];
  pagination: PaginationView;
  /** Events after this cursor are not in the list yet. */
  cursor: string;
}

export interface InstanceCreated extends SubmitView {
  instance_id: string;
  ipv6: string;
}

/** `item_hash` is the STORE message. */
export interface FileStored extends SubmitView {
  file_hash: string;
}

const FILE_TAG = /^"([0-9a-f]{64})"$/;

/** The SHA-256 that the bytes of an answer should have: by the core node's word, where a message was asked for. */
export const fileHashOf = (response: Response, asked: string): string =>
  FILE_TAG.exec(response.headers.get('etag') ?? '')?.[1] ?? asked;

const UPLOAD_TIMEOUT_MS = 3_600_000;
const LIST_PAGE_SIZE = 100;
/** The longest that a program may take, and some time for its start. */
const RUN_TIMEOUT_MS = (LIMITS.programTimeoutSecondsMax + 120) * 1000;

function queryOf(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
}

/** A core node's public API (docs/openapi.json). Every failure is an AppError with the node's code. */
export class CoreClient {
  readonly url: string;
  readonly #base: string;
  readonly #signer: Signer | undefined;
  readonly #signal: AbortSignal | undefined;

  constructor(options: CoreClientOptions) {
    this.url = options.url.replace(/\/+$/, '');
    this.#base = `${this.url}/api/v0`;
    this.#signer = options.signer;
    this.#signal = options.signal;
  }

  get signer(): Signer {
    if (!this.#signer) throw new AppError('SIGNATURE_REQUIRED', 'this needs a key to sign with');
    return this.#signer;
  }

  async #get<T>(path: string, query: Query = {}): Promise<T> {
    return requestJson<T>(`${this.#base}${path}${queryOf(query)}`, { signal: this.#signal });
  }

  /**
   * A change of an instance, dated after the last one that the caller knows of: within one second, the resolution of a
   * timestamp, the item hash would decide which of two changes counts.
   */
  #change<T>(method: 'POST' | 'PUT', path: string, draft: MessageDraft, after = 0): Promise<T> {
    const timestamp = Math.max(Math.floor(Date.now() / 1000), after + 1);
    return this.#send(method, path, { ...draft, timestamp });
  }

  #post<T>(path: string, body: unknown): Promise<T> {
    const options = { method: 'POST', body: JSON.stringify(body), signal: this.#signal } as const;
    return requestJson<T>(`${this.#base}${path}`, options);
  }

  async #send<T>(method: 'POST' | 'PUT', path: string, draft: MessageDraft): Promise<T> {
    const { body } = signMessage(draft, this.signer);
    return requestJson<T>(`${this.#base}${path}`, { method, body, signal: this.#signal });
  }

  /** Whether the node answers, and what it says of itself. */
  getInfo(): Promise<Record<string, unknown>> {
    return this.#get('/info/public.json');
  }

  postMessage(draft: MessageDraft): Promise<SubmitView> {
    return this.#send('POST', '/messages', draft);
  }

  /** Takes messages of the signer back: instances end, programs run no more, files are not kept for it. */
  forget(hashes: readonly string[], reason?: string): Promise<SubmitView> {
    return this.postMessage({
      type: 'FORGET',
      content: { hashes, ...(reason === undefined ? {} : { reason }) },
    });
  }

  getMessage(hash: string): Promise<MessageView> {
    return this.#get(`/messages/${hash}`);
  }

  /** What became of a message, and why. */
  getMessageStatus(hash: string): Promise<MessageStatusView> {
    return this.#get(`/messages/${hash}/status`);
  }

  listMessages(query: Query = {}): Promise<{ messages: MessageView[]; pagination: PaginationView }> {
    return this.#get('/messages', query);
  }

  /** Random values by the node's key. Check them with verifyVrfToken: that needs no node. */
  generateRandom(request: Readonly<Record<string, unknown>>): Promise<VrfAnswerView> {
    return this.#post('/vrf/generate', request);
  }

  /** Also says whether a known core node has published the key. */
  verifyRandom(claim: VrfClaimBody): Promise<VrfVerdictView> {
    return this.#post('/vrf/verify', claim);
  }

  /** How far chains are indexed; of one network with its contracts and endpoints. */
  getIndexerStatus(network?: string): Promise<Record<string, unknown>> {
    return this.#get(network === undefined ? '/indexer' : `/indexer/${encodeURIComponent(network)}`);
  }

  createProgram(content: Record<string, unknown>): Promise<SubmitView> {
    return this.#send('POST', '/programs', { type: 'PROGRAM', content });
  }

  /** What the program answers, whatever status it gives it. Throws where it did not answer: PROGRAM_FAILED, PROGRAM_TIMED_OUT, ... */
  runProgram(hash: string, variables: Readonly<Record<string, unknown>>): Promise<Response> {
    return request(`${this.#base}/run/${hash}`, {
      method: 'POST',
      body: JSON.stringify({ variables }),
      signal: this.#signal,
      timeoutMs: RUN_TIMEOUT_MS,
      isAnswer: ({ headers }) => headers.get('net-program-outcome') === 'answered',
    });
  }

  createInstance(content: Record<string, unknown>, channel?: string): Promise<InstanceCreated> {
    return this.#send('POST', '/instances', { type: 'INSTANCE', content, ...(channel ? { channel } : {}) });
  }

  getInstance(instanceId: string): Promise<InstanceView> {
    return this.#get(`/instances/${instanceId}`);
  }

  listInstances(query: Query = {}): Promise<InstanceList> {
    return this.#get('/instances', query);
  }

  /** Every instance that a query fits, page after page, with the cursor from which events go on. */
  async readAllInstances(query: Query = {}): Promise<{ instances: InstanceView[]; cursor: string }> {
    const instances = new Map<string, InstanceView>();
    let cursor: string | undefined;
    for (let page = 1; ; page++) {
      const list = await this.listInstances({ ...query, page, limit: LIST_PAGE_SIZE });
      // The first page's cursor: what changes while later pages are read comes again as an event.
      cursor ??= list.cursor;
      for (const instance of list.instances) instances.set(instance.instance_id, instance);
      if (page >= list.pagination.total_pages) return { instances: [...instances.values()], cursor };
    }
  }

  /** @param after the `updated_at` of the instance as the caller saw it */
  updateInstance(instanceId: string, changes: Record<string, unknown>, after?: number): Promise<SubmitView> {
    const content = { instance_id: instanceId, ...changes };
    return this.#change('PUT', `/instances/${instanceId}`, { type: 'INSTANCE_UPDATE', content }, after);
  }

  /** @param after the `updated_at` of the instance as the caller saw it */
  controlInstance(
    instanceId: string,
    action: 'start' | 'stop' | 'restart',
    after?: number,
  ): Promise<SubmitView> {
    const content = { instance_id: instanceId, action };
    return this.#change(
      'POST',
      `/instances/${instanceId}/control`,
      { type: 'INSTANCE_CONTROL', content },
      after,
    );
  }

  /**
   * Stores a file. The signature covers the file's SHA-256 in lower-case hexadecimal.
   * @param hash the SHA-256 of the file
   */
  async storeFile(
    file: Blob,
    name: string,
    hash: string,
    options: { channel?: string; tags?: string[] } = {},
  ): Promise<FileStored> {
    const form = new FormData();
    form.set('address', this.signer.address);
    form.set('signature', this.signer.sign(hash));
    if (options.channel) form.set('channel', options.channel);
    if (options.tags && options.tags.length > 0) form.set('tags', options.tags.join(','));
    form.set('file', file, name);
    return requestJson(`${this.#base}/storage/store`, {
      method: 'POST',
      body: form,
      signal: this.#signal,
      timeoutMs: UPLOAD_TIMEOUT_MS,
    });
  }

  /**
   * The file's bytes as a stream. The caller checks the hash (`fileHashOf`).
   * @param hash of the file, or of the STORE message that keeps it
   */
  getFile(hash: string): Promise<Response> {
    return request(`${this.#base}/storage/raw/${hash}`, {
      signal: this.#signal,
      timeoutMs: UPLOAD_TIMEOUT_MS,
    });
  }

  /** The message is private: the node neither keeps nor lists it. */
  registerWebhook(content: Record<string, unknown>): Promise<{ webhook_id: string; status: 'success' }> {
    return this.#send('POST', '/webhooks', { type: 'WEBHOOK', content });
  }

  listWebhooks<T>(more: Record<string, unknown> = {}): Promise<T> {
    return this.#send('POST', '/webhooks/list', { type: 'WEBHOOK', content: { action: 'list', ...more } });
  }

  /** What an owner may ask of a webhook (docs/webhooks.md). */
  askWebhook<T>(webhookId: string, action: string, more: Record<string, unknown> = {}): Promise<T> {
    const content = { action, webhook_id: webhookId, ...more };
    return this.#send('POST', `/webhooks/${webhookId}/${action}`, { type: 'WEBHOOK', content });
  }

  /** Changes from a cursor on, then live (see watchEvents). */
  events(options: WatchOptions): AsyncGenerator<NetworkEvent> {
    return watchEvents(`${this.#base}/events`, options);
  }
}
