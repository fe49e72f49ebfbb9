import type { Worker } from 'node:worker_threads';
import { backoffMs, type Logger } from '@skerry/kit';
import { endThread, startThread } from '@skerry/kit/threads';
import { sharedText } from '@skerry/protocol';
import type { Accepted } from '../../intake/accepted.ts';
import type { PassedOn, ReadFrame } from '../../intake/passed-on.ts';
import type { Reputation } from '../sync/reputation.ts';
import { keepConnected } from './addresses.ts';
import { peerOf } from './multiaddr.ts';
import {
  type FromThread,
  GOSSIP_BYTES_MAX,
  type GossipSettings,
  type GossipValidation,
  PUBLISHED_AT_ONCE,
  type ToThread,
} from './traffic.ts';

const RESTART_BASE_MS = 1_000;
const RESTART_MAX_MS = 60_000;

export interface GossipOptions {
  readonly settings: GossipSettings;
  /** What others send goes through it. */
  readonly source: PassedOn;
  readonly reputation: Reputation;
  /** A node of those that are known was met: what was missed since it was last met can be asked for. */
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

/** Whether a message goes on to others: not without its content, which they could not verify either. */
function validate(read: ReadFrame): GossipValidation {
  if ('accepted' in read) return read.accepted.message.sourceText === null ? 'ignore' : 'accept';
  return read.fault === 'forged' ? 'reject' : 'ignore';
}

/** Passes accepted messages on and takes those of others: fast and without a promise. Reconciliation brings what is lost. */
export class Gossip implements AsyncDisposable {
  readonly #options: GossipOptions;
  #worker: Worker | undefined;
  #peers: readonly string[] = [];
  readonly #connected = new Set<string>();
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
    const worker = startThread(new URL('./thread.ts', import.meta.url), {
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
      this.#connected.clear();
      if (this.#closed) return;
      const waitMs = backoffMs(++this.#failures, RESTART_BASE_MS, RESTART_MAX_MS);
      this.#restart = setTimeout(() => this.#start(), waitMs).unref();
    });
  }

  #tell(message: ToThread): void {
    this.#worker?.postMessage(message);
  }

  #tellPeers(): void {
    this.#tell({ kind: 'peers', addresses: this.#peers, banned: this.#options.reputation.listBanned() });
  }

  #hear(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        this.#failures = 0;
        this.#addresses = message.addresses;
        this.#options.log.info({ addresses: message.addresses }, 'gossip is ready');
        this.#tellPeers();
        break;
      case 'published':
        this.#onTheirWay--;
        break;
      case 'received':
        void this.#take(message.id, message.peer, Buffer.from(message.data));
        break;
      case 'connected':
        this.#counts.connected = message.connected;
        this.#connected.add(message.peer);
        if (this.#peers.some((address) => peerOf(address) === message.peer)) this.#options.onMet();
        break;
      case 'disconnected':
        this.#counts.connected = message.connected;
        this.#connected.delete(message.peer);
    }
  }

  async #take(id: number, peer: string, frame: Buffer): Promise<void> {
    const { source, reputation, log } = this.#options;
    let validation: GossipValidation = 'ignore';
    try {
      this.#counts.received++;
      const read = await source.read([frame], peer);
      validation = validate(read[0]!);
      this.#tell({ kind: 'validated', id, validation });
      if (validation === 'accept') await source.keep(read);
    } catch (error) {
      // This node's own trouble: the message comes again by reconciliation.
      log.debug({ err: error }, 'a gossiped message could not be stored');
      if (validation === 'ignore') this.#tell({ kind: 'validated', id, validation });
    }
    if (validation !== 'reject') return;
    this.#counts.forged++;
    const wasBanned = reputation.isBanned(peer);
    reputation.noteForged(peer, 1);
    if (!wasBanned && reputation.isBanned(peer)) this.#tellPeers();
  }

  /** Passes messages on that came here first. */
  publish(messages: readonly Accepted[]): void {
    for (const { message } of messages) {
      const text = sharedText(message);
      if (text === undefined || Buffer.byteLength(text) > GOSSIP_BYTES_MAX) continue;
      if (this.#onTheirWay >= PUBLISHED_AT_ONCE || this.#addresses.length === 0) {
        this.#counts.dropped++;
        continue;
      }
      this.#onTheirWay++;
      this.#counts.published++;
      this.#tell({ kind: 'publish', data: Buffer.from(text) });
    }
  }

  /**
   * To be called now and then: it also lets those back in whose faults are forgotten.
   * @param addresses multiaddrs of the nodes that are known; one that is connected is known as long as it is
   */
  meet(addresses: readonly string[]): void {
    this.#peers = keepConnected(addresses, this.#peers, this.#connected);
    this.#tellPeers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#restart);
    if (this.#worker) await endThread(this.#worker);
  }
}
