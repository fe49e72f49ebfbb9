import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildProgram, NATIVE, SANITIZER_FLAGS } from '../../dataplane/native/build.ts';
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

const KINDS = ['need_more', 'unread', 'server_name', 'no_server_name', 'malformed'] as const;

/** The native reader as a program of its own, with the sanitizers: a read beyond the bytes that came ends it. */
export async function buildNativeReader(cacheDir: string, isPortable = false): Promise<string> {
  const own = fileURLToPath(new URL('read-flights.c', import.meta.url));
  const program = { name: 'read-flights', sources: [own, ...FLIGHT_SOURCES], idleExitCode: 0 };
  const flags = [...SANITIZER_FLAGS, ...(isPortable ? [PORTABLE_FLAG] : [])];
  const built = await buildProgram(program, cacheDir, flags);
  if ('missing' in built) throw new Error(`the native reader cannot be built here: ${built.missing}`);
  return built.path;
}

/** Datagrams of one client, in their order. */
export type Flight = readonly Uint8Array[];

const uint32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);

/** What the native reader says of each flight. The reason of what is malformed is not told. */
export async function readNatively(readerPath: string, flights: readonly Flight[]): Promise<InitialAnswer[]> {
  const child = spawn(readerPath, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  child.stdin.on('error', () => {});
  for (const flight of flights) {
    child.stdin.write(uint32(flight.length));
    for (const datagram of flight) child.stdin.write(Buffer.concat([uint32(datagram.length), datagram]));
  }
  child.stdin.end();
  const [code, signal] = await closed;
  if (code !== 0) throw new Error(`the native reader ended with ${signal ?? code}`);
  const answers = Buffer.concat(chunks);
  let at = 0;
  return flights.map(() => {
    const kind = KINDS[answers[at]!]!;
    const length = answers[at + 1]!;
    const serverName = answers.toString('latin1', at + 2, at + 2 + length);
    at += 2 + length;
    if (kind === 'server_name') return { kind, serverName };
    return kind === 'malformed' ? { kind, reason: '' } : { kind };
  });
}

/** What our reader says, in the same words. */
export function readHere(flight: Flight): InitialAnswer {
  const reader = new InitialReader();
  let answer: InitialAnswer = { kind: 'unread' };
  for (const datagram of flight) answer = reader.push(datagram);
  return answer.kind === 'malformed' ? { kind: 'malformed', reason: '' } : answer;
}
