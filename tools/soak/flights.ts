import assert from 'node:assert/strict';
import { mutateFlight } from '../../services/gateway/src/quic/testing/flights.ts';
import {
  buildNativeReader,
  readHere,
  readNatively,
} from '../../services/gateway/src/quic/testing/native-reader.ts';
import { REAL_FLIGHTS } from '../../services/gateway/src/quic/testing/real-flights.ts';
import { randomFrom } from '../../services/gateway/src/tls/testing/fuzz.ts';
import { type SoakOptions, withDirectory } from './options.ts';

const BATCH = 2_000;

/** Damaged first flights of QUIC through both readers, the native one under the sanitizers: they must say the same. */
export async function soakFlights({ seconds, seed }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const reader = await buildNativeReader(directory);
    const real = REAL_FLIGHTS.map(({ datagrams }) => datagrams);
    const random = randomFrom(seed);
    const kinds = new Map<string, number>();
    let count = 0;
    for (const end = performance.now() + seconds * 1000; performance.now() < end; count += BATCH) {
      const flights = Array.from({ length: BATCH }, () => mutateFlight(random, real));
      const theirs = await readNatively(reader, flights);
      for (const [index, flight] of flights.entries()) {
        const wire = flight.map((datagram) => Buffer.from(datagram).toString('hex')).join('\n');
        assert.deepEqual(theirs[index], readHere(flight), wire);
        kinds.set(theirs[index]!.kind, (kinds.get(theirs[index]!.kind) ?? 0) + 1);
      }
    }
    const each = [...kinds].map(([kind, many]) => `${kind} ${many}`).join(', ');
    console.log(`${count} flights, no difference, no finding of the sanitizers (${each})`);
  });
}
