import type { Logger } from '@skerry/kit';
import type { InstanceStatusContent, InstanceView, Reason } from '@skerry/protocol';
import type { NetworkNames } from '../network/names.ts';
import { guestLinkOf, type Place, placeOf } from './place.ts';
import { newRecord, readRecords, type Status, writeRecord } from './record.ts';
import { wantedOf } from './wanted.ts';
import { Worker } from './worker.ts';
import type { Workshop } from './workshop.ts';

export interface KeeperOptions {
  readonly shop: Workshop;
  readonly nodeId: string;
  readonly ipv6Prefix: string;
  readonly names: NetworkNames;
  readonly tell: (status: InstanceStatusContent) => void;
  readonly log: Logger;
  /** Why this machine cannot run virtual machines, where it cannot: then every instance is refused with it. */
  readonly obstacle: Reason | null;
}

/** All instances of this node: one worker each. */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #workers = new Map<string, Worker>();
  readonly #running = new Set<Promise<void>>();
  readonly #refused = new Set<string>();

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  list(): Worker[] {
    return [...this.#workers.values()];
  }

  find(id: string): Worker | undefined {
    return this.#workers.get(id);
  }

  /** Goes on with everything that was here when the last process ended, without asking any core node. */
  async resume(): Promise<void> {
    const { shop, log, obstacle } = this.#options;
    if (obstacle) return;
    const records = await readRecords(shop.dataDir, log);
    const workers = records.map((record) => new Worker(shop, this.#place(record.id), record));
    for (const { id, ipv4 } of records) if (ipv4) shop.addresses.restore(id, ipv4);
    await shop.network.start(
      workers.flatMap(({ place, record: { ipv4, wanted } }) =>
        ipv4 ? [guestLinkOf(place, shop.ipv4Pool, wanted.allowedPorts, ipv4)] : [],
      ),
    );
    for (const worker of workers) {
      const { record } = worker;
      try {
        await worker.adopt();
      } catch (error) {
        log.error({ err: error, instance: record.id }, 'a running virtual machine could not be taken over');
      }
      this.#workers.set(record.id, worker);
      if (record.status && record.status.observedAtMs > record.publishedAtMs)
        this.tell(record.id, record.status);
      this.#run(worker);
    }
    if (records.length > 0)
      log.info(
        { instances: records.length, running: workers.filter((one) => one.hasProcess).length },
        'instances were resumed',
      );
  }

  /** What a core node says of an instance. */
  async see(view: InstanceView): Promise<void> {
    const { nodeId, shop } = this.#options;
    const worker = this.#workers.get(view.instance_id);
    if (view.node_id !== nodeId) {
      // No node at all is a scheduler's second thought: only another node ends this one's care.
      if (view.node_id !== null) worker?.want(null);
      return;
    }
    if (this.#options.obstacle) return this.#refuse(view.instance_id, this.#options.obstacle);
    if (worker) {
      worker.want(wantedOf(view));
      return;
    }
    const place = this.#place(view.instance_id);
    if (this.list().some((other) => other.place.tap === place.tap))
      return this.#refuse(view.instance_id, SAME_ADDRESS);
    const record = newRecord(view.instance_id, wantedOf(view), shop.now());
    await writeRecord(shop.dataDir, record);
    const made = new Worker(shop, place, record);
    this.#workers.set(view.instance_id, made);
    this.#run(made);
  }

  /** The owner forgot the instance: its machine ends, and its disk is released as when another node takes it over. */
  forget(instanceId: string): void {
    this.#workers.get(instanceId)?.want(null);
  }

  /** The full list of this node's instances. Says again what a core node has not heard, or has wrong. */
  async seeAll(views: readonly InstanceView[]): Promise<void> {
    for (const view of views) {
      await this.see(view);
      const status = this.#workers.get(view.instance_id)?.record.status;
      if (status && status.phase !== view.phase) this.tell(view.instance_id, status);
    }
  }

  tell(id: string, status: Status): void {
    const { phase, reason, observedAtMs, restartId } = status;
    this.#options.tell({
      instance_id: id,
      phase,
      reason,
      observed_at_ms: observedAtMs,
      restart_id: restartId,
    });
  }

  /** Resolves when no worker works any more; the signal must have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  #place(id: string): Place {
    return placeOf(this.#options.names, this.#options.ipv6Prefix, id);
  }

  #run(worker: Worker): void {
    const { log } = this.#options;
    const running: Promise<void> = worker
      .work()
      .catch((error) =>
        log.error({ err: error, instance: worker.place.id }, 'the worker of an instance ended'),
      )
      .finally(() => {
        this.#running.delete(running);
        if (worker.isDone) this.#workers.delete(worker.place.id);
      });
    this.#running.add(running);
  }

  #refuse(id: string, reason: Reason): void {
    if (this.#refused.has(id)) return;
    this.#refused.add(id);
    this.tell(id, { phase: 'failed', reason, observedAtMs: this.#options.shop.now(), restartId: null });
  }
}

/** Two instances whose hashes begin alike would share an address. The first one stays. */
const SAME_ADDRESS: Reason = {
  code: 'NO_CAPACITY',
  message: 'another instance of this node has the same address',
};
