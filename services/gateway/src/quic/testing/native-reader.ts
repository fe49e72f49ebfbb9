import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NATIVE } from '../../dataplane/native/build.ts';
import { askReader, buildReader, uint32s } from '../../testing/native-reader.ts';
import { type InitialAnswer, InitialReader } from '../initial-reader.ts';

/** What the native reader of flights is made of, beside the program around it. */
export const FLIGHT_SOURCES = [
  'flight.c',
  'hello.c',
  'initial.c',
  'packet.c',
  'gcm.c',
  'aes.c',
  'sha256.c',
].map((name) => join(NATIVE, name));
/** Leaves out what uses instructions that not every processor has. */
const PORTABLE_FLAG = '-DPORTABLE_ONLY';

/** What is said of a flight, by the numbers of the native reader. */
export const FLIGHT_KINDS = ['need_more', 'unread', 'server_name', 'no_server_name', 'malformed'] as const;

export function buildNativeReader(cacheDir: string, isPortable = false): Promise<string> {
  const own = fileURLToPath(new URL('read-flights.c', import.meta.url));
  const program = { name: 'read-flights', sources: [own, ...FLIGHT_SOURCES] };
  return buildReader(program, cacheDir, isPortable ? [PORTABLE_FLAG] : []);
}

/** Datagrams of one client, in their order. */
export type Flight = readonly Uint8Array[];

/** What the native reader says of each flight. */
export const readNatively = (path: string, flights: readonly Flight[]): Promise<InitialAnswer[]> =>
  askReader(
    path,
    FLIGHT_KINDS,
    flights.map((flight) => [
      uint32s(flight.length),
      ...flight.flatMap((datagram) => [uint32s(datagram.length), datagram]),
    ]),
  );

/** What our reader says, in the same words. */
export function readHere(flight: Flight, reader = new InitialReader()): InitialAnswer {
  let answer: InitialAnswer = { kind: 'unread' };
  for (const datagram of flight) answer = reader.push(datagram);
  return answer.kind === 'malformed' ? { kind: 'malformed', reason: '' } : answer;
}
