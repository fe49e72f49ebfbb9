import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLS_OUTCOMES, type TlsOutcome } from '../port.ts';

/** `struct shared_stats` of native/plane.h: so many 64-bit numbers, then the outcomes, then what we announce. */
const FIELDS = ['open', 'bytesToInstances', 'bytesToClients', 'routes', 'connectionBytes'] as const;
const ANNOUNCED_AT = 8 * (FIELDS.length + TLS_OUTCOMES.length);
const SIZE_BYTES = ANNOUNCED_AT + 8;

export type PlaneFigures = Readonly<Record<(typeof FIELDS)[number], number>> & {
  readonly outcomes: Readonly<Record<TlsOutcome, number>>;
};

/**
 * A nameless file that the native plane has in its memory and counts in. Reading it is one system call, needs no answer from
 * the plane, and works after its end.
 */
export class SharedStats implements Disposable {
  readonly fd: number;
  readonly #bytes = Buffer.alloc(SIZE_BYTES);
  readonly #announced = Buffer.alloc(8);

  constructor() {
    const path = join(tmpdir(), `skerry-plane-${process.pid}-${crypto.randomUUID()}`);
    this.fd = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    ftruncateSync(this.fd, SIZE_BYTES);
  }

  read(): PlaneFigures {
    readSync(this.fd, this.#bytes, 0, SIZE_BYTES, 0);
    const value = (index: number) => Number(this.#bytes.readBigUInt64LE(index * 8));
    const fields = Object.fromEntries(FIELDS.map((name, index) => [name, value(index)]));
    const outcomes = Object.fromEntries(
      TLS_OUTCOMES.map((name, index) => [name, value(FIELDS.length + index)]),
    );
    return { ...fields, outcomes } as unknown as PlaneFigures;
  }

  /** Lets the plane see, before each connection that it joins, whether it has heard all that was said to it. */
  announce(bytesSaid: number): void {
    this.#announced.writeBigUInt64LE(BigInt(bytesSaid));
    writeSync(this.fd, this.#announced, 0, 8, ANNOUNCED_AT);
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}
