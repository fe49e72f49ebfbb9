import type { InstanceView, VrfAnswerView, VrfClaimBody, VrfVerdictView } from '@skerry/protocol';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { IPFS_API } from '@skerry/protocol/api/core/ipfs';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { NETWORK_STORAGE_API } from '@skerry/protocol/api/core/network-storage';
import { PROGRAMS_API, type ProgramRunner } from '@skerry/protocol/api/core/programs';
import {
  STORAGE_API,
  type StoredFileView,
  UPLOADS_API,
  type UploadView,
} from '@skerry/protocol/api/core/storage';
import { VRF_API } from '@skerry/protocol/api/core/vrf';
import { WEBHOOKS_API, type WebhookAnswers } from '@skerry/protocol/api/core/webhooks';
import type { AnswerOf, SentBody, SentQuery } from '@skerry/protocol/api/operation';
import { AppError, fieldsOf, LIMITS } from '@skerry/protocol/forms';
import { type CallInput, call, callRaw, callRows, urlOfCall } from './call.ts';
import { askForFile } from './files/raw-file.ts';
import { hashOfFile, type OpenFile } from './files/stored-file.ts';
import { checkStored } from './files/upload-hash.ts';
import { withSent } from './lost.ts';
import { checkKept, type MessageDraft, requestChange, requestMessage, type SignedBody } from './message.ts';
import { checkPages } from './pages.ts';
import { checkAsked } from './reads/asked.ts';
import { CoreReader, type CoreReaderOptions } from './reads/core-reader.ts';
import type { InstanceList, UnreadableInstance } from './reads/instance-list.ts';
import { readLastChange } from './reads/last-change.ts';
import { requestText, type TextAnswer } from './request.ts';
import type { AskedSigner, Signer } from './signer.ts';

export interface CoreClientOptions<S extends AskedSigner = Signer> extends CoreReaderOptions {
  /** Needed for everything that changes something. */
  readonly signer?: S | undefined;
  /** Told of each signed message that the node keeps: it is in force, or pending until something comes that it needs. */
  readonly onKept?: ((answer: SubmittedMessage) => void) | undefined;
}

/** What a node says of a message that it keeps; what it rejects is an error. */
export type SubmittedMessage = AnswerOf<typeof MESSAGES_API.submitMessage>;
type InstanceQuery = SentQuery<typeof INSTANCES_API.listInstances>;

const FILE_TIMEOUT_MS = 3_600_000;
const LIST_PAGE_SIZE = 100;
/** The longest that a program may take, and some time for its start. */
const RUN_TIMEOUT_MS = (LIMITS.programTimeoutSecondsMax + 120) * 1000;

/** What an owner asks of a webhook of its own. */
const WEBHOOK_ACTIONS = {
  show: WEBHOOKS_API.showWebhook,
  pause: WEBHOOKS_API.pauseWebhook,
  resume: WEBHOOKS_API.resumeWebhook,
  test: WEBHOOKS_API.testWebhook,
  rotate: WEBHOOKS_API.rotateWebhook,
  delete: WEBHOOKS_API.deleteWebhook,
  deliveries: WEBHOOKS_API.listDeliveries,
  replay: WEBHOOKS_API.replayWebhook,
} as const;
type OwnWebhookAction = keyof typeof WEBHOOK_ACTIONS;

/**
 * A core node's public API (docs/openapi.json). Every failure is an AppError with the node's code. What one client has written, its
 * later reads know of, also where a node reads from standbys of its database.
 */
export class CoreClient<S extends AskedSigner = Signer> extends CoreReader {
  readonly #signer: S | undefined;
  readonly #onKept: CoreClientOptions['onKept'];

  constructor(options: CoreClientOptions<S>) {
    super(options);
    this.#signer = options.signer;
    this.#onKept = options.onKept;
  }

  get signer(): S {
    if (!this.#signer) throw new AppError('SIGNATURE_REQUIRED', 'this requires a signing key');
    return this.#signer;
  }

  /** A file may take long. */
  get #fileOptions() {
    return { ...this.options, timeoutMs: FILE_TIMEOUT_MS };
  }

  /** For each call that sends a message. Throws HASH_MISMATCH; an error that leaves open whether it arrived has its `item_hash`. */
  async #take<A extends SubmittedMessage>(itemHash: string, sending: Promise<A>): Promise<A> {
    const answer = await withSent(itemHash, sending);
    checkKept(itemHash, answer.item_hash);
    this.#onKept?.(answer);
    return answer;
  }

  #sign(draft: MessageDraft): Promise<SignedBody> {
    return requestMessage(draft, this.signer);
  }

  #signChange(draft: MessageDraft, after: number | undefined): Promise<SignedBody> {
    return requestChange(draft, this.signer, { url: this.url, time: after });
  }

  /**
   * What changes an aggregate or a post is dated after the last change of it that the node knows of, where it has no time of its own.
   * Throws HASH_MISMATCH, as does whatever sends a message, where the node names another message than the one that was signed. Where the
   * error is that nobody answers, the message may be kept all the same: its `item_hash` is in the details.
   */
  async postMessage(draft: MessageDraft): Promise<SubmittedMessage> {
    const { timestamp } = draft;
    const { body, itemHash } =
      timestamp === undefined
        ? await this.#signChange(
            draft,
            await readLastChange(this.url, draft, this.signer.address, this.options),
          )
        : await this.#sign(draft);
    return this.#take(itemHash, this.ask(MESSAGES_API.submitMessage, { body }));
  }

  /** Takes messages of the signer back: instances end, programs run no more, files are not kept for it. */
  forget(hashes: readonly string[], reason?: string): Promise<SubmittedMessage> {
    return this.postMessage({
      type: 'FORGET',
      content: { hashes, ...(reason === undefined ? {} : { reason }) },
    });
  }

  /** Random values by the node's key. Check them with verifyVrfToken: that needs no node. */
  generateRandom(body: SentBody<typeof VRF_API.generateRandom>): Promise<VrfAnswerView> {
    return this.ask(VRF_API.generateRandom, { body });
  }

  /** Also says whether a known core node has published the key. */
  verifyRandom(body: VrfClaimBody): Promise<VrfVerdictView> {
    return this.ask(VRF_API.verifyRandom, { body });
  }

  async createProgram(
    content: Record<string, unknown>,
  ): Promise<AnswerOf<typeof PROGRAMS_API.createProgram>> {
    const { body, itemHash } = await this.#sign({ type: 'PROGRAM', content });
    return this.#take(itemHash, this.ask(PROGRAMS_API.createProgram, { body }));
  }

  /** The programs that a compute node runs by itself. */
  listAssignedPrograms(nodeId: string): Promise<AnswerOf<typeof PROGRAMS_API.listAssignedPrograms>> {
    return this.ask(PROGRAMS_API.listAssignedPrograms, { params: { node_id: nodeId } });
  }

  /** The compute nodes that a program is sent to, in the order in which they are asked. Throws PROGRAM_NOT_FOUND. */
  async listProgramRunners(hash: string): Promise<ProgramRunner[]> {
    const input = { params: { program_hash: hash } };
    return (await this.ask(PROGRAMS_API.listProgramRunners, input)).runners;
  }

  /** What the program answers, whatever status it gives it. Throws where it did not answer: PROGRAM_FAILED, PROGRAM_TIMED_OUT, ... */
  runProgram(hash: string, variables: Readonly<Record<string, unknown>>): Promise<TextAnswer> {
    return requestText(urlOfCall(this.url, PROGRAMS_API.runProgram, { params: { program_hash: hash } }), {
      method: PROGRAMS_API.runProgram.method,
      body: JSON.stringify({ variables }),
      signal: this.options.signal,
      timeoutMs: RUN_TIMEOUT_MS,
      isAnswer: ({ headers }) => headers.get('net-program-outcome') === 'answered',
    });
  }

  async createInstance(
    content: Record<string, unknown>,
    channel?: string,
  ): Promise<AnswerOf<typeof INSTANCES_API.createInstance>> {
    const draft = { type: 'INSTANCE', content, ...(channel ? { channel } : {}) };
    const { body, itemHash } = await this.#sign(draft);
    const creating = this.ask(INSTANCES_API.createInstance, { body }).then((created) => {
      checkKept(itemHash, created.instance_id);
      return created;
    });
    return this.#take(itemHash, creating);
  }

  async getInstance(instanceId: string): Promise<InstanceView> {
    const input = { params: { instance_id: instanceId } };
    return checkAsked(instanceId, 'instance_id', await this.ask(INSTANCES_API.getInstance, input));
  }

  /** One page. */
  listInstances(query: InstanceQuery = {}) {
    return callRows(this.url, INSTANCES_API.listInstances, 'instances', { query }, this.options);
  }

  /** Every instance that a query fits, page after page. */
  async readAllInstances(query: InstanceQuery = {}): Promise<InstanceList> {
    const instances = new Map<string, InstanceView>();
    const unreadable: UnreadableInstance[] = [];
    let cursor: string | undefined;
    let after: string | undefined;
    for (let page = 1; ; page++) {
      // By its cursor: of pages by number, one would lack the row that moved up as another was forgotten.
      const list = await this.listInstances({ ...query, cursor: after, limit: LIST_PAGE_SIZE });
      // The first page's cursor of events: what changes while later pages are read comes again as an event.
      cursor ??= list.cursor;
      for (const instance of list.instances) instances.set(instance.instance_id, instance);
      for (const { row, error } of list.unreadable) {
        const { instance_id: id } = fieldsOf(row);
        unreadable.push({ instanceId: typeof id === 'string' ? id : undefined, error });
      }
      if (list.next_cursor === null) return { instances: [...instances.values()], unreadable, cursor };
      checkPages(page);
      after = list.next_cursor;
    }
  }

  /** @param after the `updated_at` of the instance as the caller saw it */
  async updateInstance(
    instanceId: string,
    changes: Record<string, unknown>,
    after?: number,
  ): Promise<AnswerOf<typeof INSTANCES_API.updateInstance>> {
    const content = { instance_id: instanceId, ...changes };
    const { body, itemHash } = await this.#signChange({ type: 'INSTANCE_UPDATE', content }, after);
    const input = { params: { instance_id: instanceId }, body };
    return this.#take(itemHash, this.ask(INSTANCES_API.updateInstance, input));
  }

  /** @param after the `updated_at` of the instance as the caller saw it */
  async controlInstance(
    instanceId: string,
    action: 'start' | 'stop' | 'restart',
    after?: number,
  ): Promise<AnswerOf<typeof INSTANCES_API.controlInstance>> {
    const content = { instance_id: instanceId, action };
    const { body, itemHash } = await this.#signChange({ type: 'INSTANCE_CONTROL', content }, after);
    const input = { params: { instance_id: instanceId }, body };
    return this.#take(itemHash, this.ask(INSTANCES_API.controlInstance, input));
  }

  /**
   * Stores a file. The signature covers the file's SHA-256 in lower-case hexadecimal. Throws HASH_MISMATCH where the node says that it
   * stored something else.
   * @param hash the SHA-256 of the file
   */
  async storeFile(
    file: Blob,
    name: string,
    hash: string,
    options: { channel?: string; tags?: string[] } = {},
  ): Promise<StoredFileView> {
    const form = new FormData();
    form.set('address', this.signer.address);
    form.set('signature', await this.signer.sign(hash));
    if (options.channel) form.set('channel', options.channel);
    if (options.tags && options.tags.length > 0) form.set('tags', options.tags.join(','));
    form.set('file', file, name);
    const stored = await call(this.url, STORAGE_API.storeFile, { body: form }, this.#fileOptions);
    return checkStored(this.signer, hash, stored);
  }

  /** How much of a file of this signer's the node has that is sent in parts. Throws ROUTE_NOT_FOUND where it takes none. */
  getUpload(hash: string, size: number): Promise<UploadView> {
    const query = { address: this.signer.address, size };
    return this.ask(UPLOADS_API.getUpload, { params: { hash }, query });
  }

  /**
   * A file by its hash, or by that of the STORE message that keeps it. Which bytes it has to have is never the node's word: it
   * follows from what was asked for, and from what the sender of the message signed.
   * @param timeoutMs until all of it is there
   */
  async openFile(asked: string, timeoutMs?: number): Promise<OpenFile> {
    const response = await this.getFile(asked, timeoutMs);
    return { hash: await hashOfFile(this, asked, response), response };
  }

  /**
   * The file's bytes as a stream. The caller checks the hash (`openFile` says which one, where a message is asked for).
   * @param hash of the file, or of the STORE message that keeps it
   * @param timeoutMs until all of it is there
   * @param firstByte where to begin; a node that does so answers 206, any other sends all of it
   */
  getFile(hash: string, timeoutMs = FILE_TIMEOUT_MS, firstByte = 0): Promise<Response> {
    return askForFile(this.url, hash, { ...this.options, timeoutMs }, firstByte);
  }

  /** What the node says of a file without its bytes. Throws FILE_NOT_FOUND. */
  getFileMetadata(hash: string): Promise<AnswerOf<typeof STORAGE_API.getFileMetadata>> {
    return this.ask(STORAGE_API.getFileMetadata, { params: { hash } });
  }

  /** How many messages in force keep a file: STORE messages, and whichever has it as its content or its code. */
  countFileMessages(hash: string): Promise<AnswerOf<typeof NETWORK_STORAGE_API.countFileMessages>> {
    return this.ask(NETWORK_STORAGE_API.countFileMessages, { params: { hash } });
  }

  /** One block of IPFS as the node keeps it. The caller checks its hash. */
  getIpfsBlock(cid: string): Promise<Response> {
    const input = { params: { hash: cid }, query: { format: 'raw' } } as const;
    return callRaw(this.url, IPFS_API.getIpfsFile, input, { signal: this.options.signal });
  }

  /** The message is private: the node neither keeps nor lists it. */
  async registerWebhook(
    content: Record<string, unknown>,
  ): Promise<AnswerOf<typeof WEBHOOKS_API.registerWebhook>> {
    const { body, itemHash } = await this.#sign({ type: 'WEBHOOK', content });
    const registered = await this.ask(WEBHOOKS_API.registerWebhook, { body });
    checkKept(itemHash, registered.webhook_id);
    return registered;
  }

  async listWebhooks(more: Record<string, unknown> = {}): Promise<WebhookAnswers['list']> {
    const { body } = await this.#sign({ type: 'WEBHOOK', content: { action: 'list', ...more } });
    return this.ask(WEBHOOKS_API.listWebhooks, { body });
  }

  /** What an owner may ask of a webhook (docs/webhooks.md). */
  async askWebhook<A extends OwnWebhookAction>(
    webhookId: string,
    action: A,
    more: Record<string, unknown> = {},
  ): Promise<AnswerOf<(typeof WEBHOOK_ACTIONS)[A]>> {
    const content = { action, webhook_id: webhookId, ...more };
    const { body } = await this.#sign({ type: 'WEBHOOK', content });
    const input = { params: { webhook_id: webhookId }, body };
    return this.ask(WEBHOOK_ACTIONS[action], input as CallInput<(typeof WEBHOOK_ACTIONS)[A]>);
  }
}
