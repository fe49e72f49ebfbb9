import { AppError } from '@skerry/protocol';
import type { Vm } from '../vm/vm.ts';
import type { Place } from './place.ts';
import type { InstanceRecord } from './record.ts';

/** What an errand may use: nothing else happens to the instance while it runs. */
export interface Bench {
  readonly place: Place;
  readonly record: InstanceRecord;
  /** The instance's directory. */
  readonly directory: string;
  /** undefined while the instance is off. */
  readonly vm: Vm | undefined;
  /** Shuts the guest down and ends its QEMU; does nothing where it is off. */
  stop(): Promise<void>;
  remember(change: Partial<InstanceRecord>): Promise<void>;
}

export type Errand<T> = (bench: Bench) => Promise<T>;

const WAITING_MAX = 8;

/** What an owner asks of one instance, done one after the other between the steps of its worker. */
export class ErrandLine {
  readonly #line: ((bench: Bench | Error) => Promise<void>)[] = [];

  get isEmpty(): boolean {
    return this.#line.length === 0;
  }

  /** Rejects with INSTANCE_BUSY when the errand has not begun after a while; then it does not happen at all. */
  ask<T>(errand: Errand<T>, waitMs: number): Promise<T> {
    if (this.#line.length >= WAITING_MAX)
      return Promise.reject(new AppError('INSTANCE_BUSY', 'too much is asked of this instance at once'));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = async (bench: Bench | Error) => {
      clearTimeout(timer);
      if (bench instanceof Error) return reject(bench);
      await errand(bench).then(resolve, reject);
    };
    const timer = setTimeout(() => {
      this.#line.splice(this.#line.indexOf(begin), 1);
      reject(new AppError('INSTANCE_BUSY', `the instance was not free in ${waitMs} ms; ask again later`));
    }, waitMs);
    this.#line.push(begin);
    return promise;
  }

  /** Does the next errand to its end, whatever comes of it: who asked is told. */
  async next(bench: Bench): Promise<void> {
    await this.#line.shift()?.(bench);
  }

  /** Nothing will be done any more. */
  close(why: Error): void {
    for (const begin of this.#line.splice(0)) void begin(why);
  }
}
