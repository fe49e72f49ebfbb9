import { AppError } from '@skerry/protocol';
import type { Vm } from '../../vm/vm.ts';
import type { Place } from '../place.ts';
import type { InstanceRecord } from '../record/record.ts';

/** What a task may use: nothing else happens to the instance while it runs. */
export interface IdleInstance {
  readonly place: Place;
  readonly record: InstanceRecord;
  /** The instance's directory. */
  readonly directory: string;
  /** undefined while the instance is off. */
  readonly vm: Vm | undefined;
  /** Shuts the guest down and ends its QEMU; does nothing where it is off. */
  stop(): Promise<void>;
  update(change: Partial<InstanceRecord>): Promise<void>;
}

export type OwnerTask<T> = (instance: IdleInstance) => Promise<T>;

const WAITING_MAX = 8;

/** What an owner asks of one instance, done one after the other between the steps of its worker. */
export class OwnerTaskQueue {
  readonly #line: ((instance: IdleInstance | Error) => Promise<void>)[] = [];

  get isEmpty(): boolean {
    return this.#line.length === 0;
  }

  /** Rejects with INSTANCE_BUSY when the task has not begun after a while; then it does not happen at all. */
  run<T>(task: OwnerTask<T>, waitMs: number): Promise<T> {
    if (this.#line.length >= WAITING_MAX)
      return Promise.reject(
        new AppError('INSTANCE_BUSY', 'too many operations are waiting for this instance'),
      );
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = async (instance: IdleInstance | Error) => {
      clearTimeout(timer);
      if (instance instanceof Error) return reject(instance);
      await task(instance).then(resolve, reject);
    };
    const timer = setTimeout(() => {
      this.#line.splice(this.#line.indexOf(begin), 1);
      reject(new AppError('INSTANCE_BUSY', `the instance was busy for ${waitMs} ms; try again later`));
    }, waitMs);
    this.#line.push(begin);
    return promise;
  }

  /** Does the next task to its end, whatever comes of it: who asked is told. */
  async next(instance: IdleInstance): Promise<void> {
    await this.#line.shift()?.(instance);
  }

  /** Nothing will be done any more. */
  close(why: Error): void {
    for (const begin of this.#line.splice(0)) void begin(why);
  }
}
