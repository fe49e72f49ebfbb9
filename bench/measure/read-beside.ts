import { setTimeout as delay } from 'node:timers/promises';
import { collectGarbage } from './garbage.ts';
import { timeOf } from './queries.ts';

/** Messages on their way at a time, at a steady rate. */
const IN_FLIGHT_MAX = 2_000;

interface Writes {
  readonly bodies: readonly Buffer[];
  /** In a second, whenever the answers come. */
  readonly rate: number;
  readonly write: (body: Buffer, index: number) => Promise<unknown>;
}

interface Reads {
  readonly readers: number;
  /** Between the beginnings of two reads of one reader, as long as the answers come sooner. */
  readonly everyMs: number;
  readonly read: (index: number) => Promise<unknown>;
}

/** Resolves when all are answered. */
async function writeSteadily({ bodies, rate, write }: Writes): Promise<void> {
  const startMs = performance.now();
  const under = new Set<Promise<unknown>>();
  for (const [index, body] of bodies.entries()) {
    const waitMs = startMs + (index * 1_000) / rate - performance.now();
    if (waitMs > 1) await delay(waitMs);
    if (under.size >= IN_FLIGHT_MAX) await Promise.race(under);
    const written: Promise<unknown> = write(body, index).finally(() => under.delete(written));
    under.add(written);
  }
  await Promise.all(under);
}

/** Reads until all is written. @returns milliseconds of each read, and seconds of all writes */
export async function readBeside(
  writes: Writes,
  { readers, everyMs, read }: Reads,
): Promise<{ timesMs: number[]; seconds: number }> {
  collectGarbage();
  const timesMs: number[] = [];
  let isOver = false;
  const readOn = async (reader: number) => {
    // Readers do not march in step.
    await delay((reader * everyMs) / readers);
    for (let index = reader; !isOver; index += readers) {
      const tookMs = await timeOf(() => read(index));
      timesMs.push(tookMs);
      if (tookMs < everyMs) await delay(everyMs - tookMs);
    }
  };
  const reading = Promise.all(Array.from({ length: readers }, (_, reader) => readOn(reader)));
  const startMs = performance.now();
  try {
    await Promise.race([writeSteadily(writes), reading]);
  } finally {
    isOver = true;
  }
  const seconds = (performance.now() - startMs) / 1_000;
  await reading;
  return { timesMs, seconds };
}
