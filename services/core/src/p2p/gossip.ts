import { Worker } from 'node:worker_threads';
import { backoffMs, type Logger } from '@skerry/kit';
import { sharedText } from '@skerry/protocol';
import type { Accepted } from '../messages/accepted.ts';
import type { Reputation } from '../sync/reputation.ts';
import { keepVerified, type Taker, verifyFrame } from '../sync/take.ts';
import {
  type FromThread,
  GOSSIP_BYTES_MAX,
  type GossipSettings,
  type GossipVerdict,
  PUBLISHED_AT_ONCE,
  type ToThread,
} from './traffic.ts';

const RESTART_BASE_MS = 1_000;
const RESTART_MAX_MS = 60_000;

export interface GossipOptions {
  readonly settings: GossipSettings;
  readonly taker: Taker;
  readonly reputation: Reputation;
  /** A node was met: what was missed since it was last met can be asked for. */
  readonly onMet: () => void;
  readonly log: Logger;
}

export interface GossipCounts {
  readonly connected: number;
  readonly published: number;
  /** Accepted messages that were not sent out, since too many were on their way. */
  readonly dropped: number;
  readonly received: number;
  readonly forged: number;
}

/** Passes accepted messages on and takes those of others: fast and without a promise. Reconciliation brings what is lost. */
export class Gossip implements AsyncDisposable {
  readonly #options: GossipOptions;
  #worker: Worker | undefined;
  #peers: readonly string[] = [];
  #addresses: readonly string[] = [];
  #onTheirWay = 0;
  #failures = 0;
  #restart: NodeJS.Timeout | undefined;
  #closed = false;
  #counts = { connected: 0, published: 0, dropped: 0, received: 0, forged: 0 };

  constructor(options: GossipOptions) {
    this.#options = options;
    this.#start();
  }

  /** Where others can reach this node; empty until it listens. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  get counts(): GossipCounts {
    return this.#counts;
  }

  #start(): void {
    const worker = new Worker(new URL('./thread.ts', import.meta.url), {
      name: 'gossip',
      workerData: this.#options.settings,
    });
    worker.unref();
    this.#worker = worker;
    worker.on('message', (message: FromThread) => this.#hear(message));
    worker.on('error', (error) => this.#options.log.error({ err: error }, 'the gossip thread failed'));
    worker.once('exit', () => {
      this.#addresses = [];
      this.#onTheirWay = 0;
      this.#counts.connected = 0;
      if (this.#closed) return;
      const waitMs = backoffMs(++this.#failures, RESTART_BASE_MS, RESTART_MAX_MS);
      this.#restart = setTimeout(() => this.#start(), waitMs).unref();
    });
  }

  #tell(message: ToThread): void {
    this.#worker?.postMessage(message);
  }

  #hear(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        this.#failures = 0;
        this.#addresses = message.addresses;
        this.#options.log.info({ addresses: message.addresses }, 'gossip is ready');
        this.#tell({ kind: 'peers', addresses: this.#peers });
        break;
      case 'published':
        this.#onTheirWay--;
        break;
      case 'received':
        void this.#judge(message.id, message.peer, Buffer.from(message.data));
        break;
      case 'connected':
        this.#counts.connected = message.connected;
        this.#options.onMet();
        break;
      case 'disconnected':
        this.#counts.connected = message.connected;
    }
  }

  async #judge(id: number, peer: string, frame: Buffer): Promise<void> {
    const { taker, reputation, log } = this.#options;
    let verdict: GossipVerdict = 'ignore';
    try {
      this.#counts.received++;
      const verified = await verifyFrame(frame, taker);
      if ('accepted' in verified && verified.accepted.message.sourceText !== null) verdict = 'accept';
      else if ('worth' in verified && verified.worth === 'forged') verdict = 'reject';
      this.#tell({ kind: 'verdict', id, verdict });
      if (verdict === 'accept') await keepVerified([verified], taker, 'gossip');
    } catch (error) {
      // This node's own trouble: the message comes again by reconciliation.
      log.debug({ err: error }, 'a gossiped message could not be kept');
      if (verdict === 'ignore') this.#tell({ kind: 'verdict', id, verdict });
    }
    if (verdict !== 'reject') return;
    this.#counts.forged++;
    reputation.noteForged(peer, 1);
    if (reputation.isBanned(peer)) this.#tell({ kind: 'ban', peer });
  }

  /** Passes messages on that a client brought. */
  publish(messages: readonly Accepted[]): void {
    for (const { message } of messages) {
      const text = sharedText(message);
      if (text === undefined || text.length > GOSSIP_BYTES_MAX) continue;
      if (this.#onTheirWay >= PUBLISHED_AT_ONCE || this.#addresses.length === 0) {
        this.#counts.dropped++;
        continue;
      }
      this.#onTheirWay++;
      this.#counts.published++;
      this.#tell({ kind: 'publish', data: Buffer.from(text) });
    }
  }

  /** @param addresses multiaddrs of all nodes that are known */
  meet(addresses: readonly string[]): void {
    this.#peers = addresses;
    this.#tell({ kind: 'peers', addresses });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#restart);
    await this.#worker?.terminate();
  }
}
