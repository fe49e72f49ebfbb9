import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  QUIC_FIGURE_NAMES,
  QUIC_OUTCOMES,
  type QuicCounts,
  TLS_FIGURE_NAMES,
  TLS_OUTCOMES,
  type TlsCounts,
} from '../figures.ts';
import { SHARED_STATS } from './layout.ts';

const byName = <Name extends string>(names: readonly Name[], counts: readonly number[]) =>
  Object.fromEntries(names.map((name, index) => [name, counts[index]!])) as Record<Name, number>;

/**
 * A nameless file that the native plane has in its memory and counts in. Reading it is one system call, needs no answer from
 * the plane, and works after its end.
 */
export class SharedStats implements Disposable {
  readonly fd: number;
  readonly #bytes = Buffer.alloc(SHARED_STATS.sizeBytes);
  readonly #announced = Buffer.alloc(8);

  constructor() {
    const path = join(tmpdir(), `skerry-plane-${process.pid}-${crypto.randomUUID()}`);
    this.fd = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    ftruncateSync(this.fd, SHARED_STATS.sizeBytes);
  }

  /** With what the plane holds for connections. */
  read(): { readonly tls: TlsCounts; readonly quic: QuicCounts; readonly connectionBytes: number } {
    readSync(this.fd, this.#bytes, 0, this.#bytes.length, 0);
    const { outcomes, quicOutcomes, connectionBytes, ...rest } = SHARED_STATS.read(this.#bytes);
    const figuresOf = <Name extends keyof typeof rest>(names: readonly Name[]) =>
      Object.fromEntries(names.map((name) => [name, rest[name]])) as Record<Name, number>;
    return {
      tls: { figures: figuresOf(TLS_FIGURE_NAMES), outcomes: byName(TLS_OUTCOMES, outcomes) },
      quic: { figures: figuresOf(QUIC_FIGURE_NAMES), outcomes: byName(QUIC_OUTCOMES, quicOutcomes) },
      connectionBytes,
    };
  }

  /** Lets the plane see, before each connection that it joins, whether it has heard all that was said to it. */
  announce(bytesSaid: number): void {
    this.#announced.writeBigUInt64LE(BigInt(bytesSaid));
    writeSync(this.fd, this.#announced, 0, 8, SHARED_STATS.offsetOf('announcedBytes'));
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}
