import type { CoreClient } from '@skerry/client';
import { backoffMs, type Logger, pause } from '@skerry/kit';
import {
  AppError,
  type InstanceStatusContent,
  NETWORK_CHANNEL,
  NETWORK_POST,
  type NodeContent,
} from '@skerry/protocol';

export interface PublisherOptions {
  readonly core: Pick<CoreClient, 'postMessage'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told when a core node took a status. */
  readonly onAccepted: (status: InstanceStatusContent) => Promise<void>;
}

const RETRY_BASE_MS = 200;
const RETRY_MAX_MS = 15_000;

/**
 * Tells the network about this node and its instances. The latest word about each thing waits here until a core node has
 * taken it, however long that is; an older word that was not sent yet is replaced.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #statuses = new Map<string, InstanceStatusContent>();
  #node: NodeContent | undefined;
  #wake = Promise.withResolvers<void>();
  #saidUnreachable = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  tellNode(content: NodeContent): void {
    this.#node = content;
    this.#wake.resolve();
  }

  tellStatus(status: InstanceStatusContent): void {
    this.#statuses.set(status.instance_id, status);
    this.#wake.resolve();
  }

  /** How many things wait to be told. */
  get waiting(): number {
    return this.#statuses.size + (this.#node === undefined ? 0 : 1);
  }

  /** Sends until the signal ends. */
  async work(): Promise<void> {
    const { signal } = this.#options;
    signal.addEventListener('abort', () => this.#wake.resolve(), { once: true });
    let failures = 0;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers<void>();
      const isDone = await this.#sendOne();
      if (isDone === 'idle') await this.#wake.promise;
      failures = isDone === 'failed' ? failures + 1 : 0;
      if (failures > 0) await pause(backoffMs(failures, RETRY_BASE_MS, RETRY_MAX_MS), signal);
    }
  }

  async #sendOne(): Promise<'sent' | 'failed' | 'idle'> {
    const node = this.#node;
    if (node !== undefined) {
      const result = await this.#post(NETWORK_POST.node, node);
      if (result === 'sent' && this.#node === node) this.#node = undefined;
      return result;
    }
    const [status] = this.#statuses.values();
    if (status === undefined) return 'idle';
    const result = await this.#post(NETWORK_POST.instanceStatus, status);
    if (result === 'failed') return result;
    if (this.#statuses.get(status.instance_id) === status) this.#statuses.delete(status.instance_id);
    await this.#options
      .onAccepted(status)
      .catch((error) => this.#options.log.warn({ err: error }, 'a record could not be written'));
    return result;
  }

  async #post(type: string, content: unknown): Promise<'sent' | 'failed'> {
    const { core, log, signal } = this.#options;
    try {
      await core.postMessage({ type: 'POST', channel: NETWORK_CHANNEL.compute, content: { type, content } });
      if (this.#saidUnreachable) log.info('the core node takes messages again');
      this.#saidUnreachable = false;
      return 'sent';
    } catch (error) {
      if (signal.aborted) return 'failed';
      if (error instanceof AppError && error.kind === 'invalid') {
        // The same message would be refused for ever, and hold up all others.
        log.error({ err: error, type }, 'the core node refuses a message of this node; it is dropped');
        return 'sent';
      }
      if (!this.#saidUnreachable)
        log.warn({ err: error, type }, 'a message could not be published; it is kept and sent again');
      this.#saidUnreachable = true;
      return 'failed';
    }
  }
}
