import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { InitialReader } from '../../services/gateway/src/quic/initial-reader.ts';
import { type InitialKeys, initialKeys } from '../../services/gateway/src/quic/keys.ts';
import {
  FLIGHT_KINDS,
  type Flight,
  readHere,
} from '../../services/gateway/src/quic/testing/native-reader.ts';
import { endFuzz, startFuzz, TOLD_FD } from './flights-native.ts';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach } from './run/counts.ts';

const UINT32_BYTES = 4;
const MAX_KNOWN_KEYS = 10_000;
const BETWEEN_REPORTS = 250_000;

interface Told {
  readonly flight: Flight;
  readonly kind: string;
  readonly serverName: string;
  readonly end: number;
}

/** One flight and what the native reader said of it; undefined where not all of it has come. */
function readTold(bytes: Buffer, begin: number): Told | undefined {
  let at = begin;
  const flight: Uint8Array[] = [];
  const isThere = (length: number) => at + length <= bytes.length;
  if (!isThere(UINT32_BYTES)) return undefined;
  const count = bytes.readUInt32LE(at);
  at += UINT32_BYTES;
  while (flight.length < count) {
    if (!isThere(UINT32_BYTES)) return undefined;
    const length = bytes.readUInt32LE(at);
    at += UINT32_BYTES;
    if (!isThere(length)) return undefined;
    flight.push(bytes.subarray(at, at + length));
    at += length;
  }
  if (!isThere(2) || !isThere(2 + bytes[at + 1]!)) return undefined;
  const end = at + 2 + bytes[at + 1]!;
  return { flight, kind: FLIGHT_KINDS[bytes[at]!]!, serverName: bytes.toString('latin1', at + 2, end), end };
}

/** Most flights bear one of a few ids: their keys are derived once. */
function rememberedKeys(): typeof initialKeys {
  const known = new Map<string, InitialKeys>();
  return (version, destination, side) => {
    const name = `${version} ${Buffer.from(destination).toString('latin1')}`;
    const keys = known.get(name) ?? initialKeys(version, destination, side);
    if (known.size < MAX_KNOWN_KEYS) known.set(name, keys);
    return keys;
  };
}

function compare({ flight, kind, serverName }: Told, keysOf: typeof initialKeys): void {
  const ours = readHere(flight, new InitialReader(keysOf));
  if (ours.kind === kind && (ours.kind !== 'server_name' || ours.serverName === serverName)) return;
  const wire = flight.map((datagram) => Buffer.from(datagram).toString('hex')).join('\n');
  assert.fail(`native: ${kind} ${serverName}; here: ${JSON.stringify(ours)}\n${wire}`);
}

async function compareAll(told: Readable): Promise<number> {
  const keysOf = rememberedKeys();
  let rest: Buffer = Buffer.alloc(0);
  let count = 0;
  for await (const chunk of told as AsyncIterable<Buffer>) {
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    let at = 0;
    for (let next = readTold(rest, at); next; next = readTold(rest, at)) {
      compare(next, keysOf);
      at = next.end;
      count++;
      if (count % BETWEEN_REPORTS === 0) console.error(`${count} flights`);
    }
    rest = rest.subarray(at);
  }
  assert.equal(rest.length, 0, 'the native reader ended in the middle of a flight');
  return count;
}

/** Damaged first flights of QUIC through both readers, the native one under the sanitizers: they must say the same. */
export async function soakFlights(options: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const child = startFuzz(directory, options, true);
    const ended = endFuzz(child);
    try {
      const flights = await compareAll(child.stdio[TOLD_FD] as Readable);
      console.log(
        `${flights} flights in both readers, no difference, no finding of the sanitizers; ${await ended}`,
      );
      assertEach({ flights });
    } finally {
      child.kill('SIGKILL');
      await ended.catch(() => {});
    }
  });
}
