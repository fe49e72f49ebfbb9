import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SANITIZER_FLAGS } from '../../services/gateway/src/dataplane/native/build.ts';
import { cutAt, inDatagrams } from '../../services/gateway/src/quic/testing/flights.ts';
import { FLIGHT_SOURCES } from '../../services/gateway/src/quic/testing/native-reader.ts';
import { REAL_FLIGHTS } from '../../services/gateway/src/quic/testing/real-flights.ts';
import { uint32s } from '../../services/gateway/src/testing/native-reader.ts';
import { randomFrom } from '../../services/gateway/src/tls/testing/fuzz.ts';
import { helloMessage, serverNameExtension } from '../../services/gateway/src/tls/testing/hello.ts';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach, countsIn } from './run/counts.ts';

const FUZZ = ['fuzz.c', 'mutants.c'].map((name) =>
  fileURLToPath(new URL(`../../services/gateway/src/quic/testing/${name}`, import.meta.url)),
);
const NAME = 'farm-manage-desk-seek.skerry.localhost';
/** Where the program tells each flight and its answer, if it is to. */
export const TOLD_FD = 3;

/** These take most of the time, and every byte that they are given is one that the reader chose. */
const isCipher = (path: string) => /(aes|gcm)\.c$/.test(path);

/** What the mutants grow from: what browsers sent, and hellos of every size and with every kind of name. */
function seedFlights(): Buffer {
  const shapes = [
    { serverName: NAME },
    { serverName: 'UPPER.Example.', keyShareBytes: 1216 },
    { serverName: 'x'.repeat(255), sessionIdBytes: 0 },
    { serverName: '' },
    { keyShareBytes: 0 },
    { serverName: NAME, extensions: [serverNameExtension('b.example')] },
    { serverName: 'a.example', keyShareBytes: 16_000 },
  ];
  const random = randomFrom(1);
  const built = shapes.map((shape) => {
    const message = helloMessage(shape);
    const places = Array.from({ length: 1 + message.length / 900 }, (_, index) => index * 900);
    return inDatagrams(cutAt(message, places), {}, random);
  });
  // Of Chromium's, the first two: the others are the same hello once more.
  const real = REAL_FLIGHTS.map(({ datagrams }) => datagrams.slice(0, 2));
  return Buffer.concat(
    [...real, ...real, ...built].flatMap((flight) => [
      uint32s(flight.length),
      ...flight.flatMap((wire) => [uint32s(wire.length), wire]),
    ]),
  );
}

/**
 * The native reader under the sanitizers, fed with damaged flights; told flights and answers come from TOLD_FD, and then its
 * ciphers are without the sanitizers.
 */
export function startFuzz(
  directory: string,
  { seconds, seed, inputs }: SoakOptions,
  isTold: boolean,
): ChildProcess {
  const program = join(directory, 'fuzz');
  const compile = (args: readonly string[]) =>
    execFileSync('cc', ['-O2', '-g1', ...args], { cwd: directory, stdio: 'inherit' });
  const apart = isTold ? FLIGHT_SOURCES.filter(isCipher) : [];
  const others = FLIGHT_SOURCES.filter((path) => !apart.includes(path));
  if (isTold) compile(['-c', ...apart]);
  const objects = apart.map((path) => join(directory, basename(path).replace(/c$/, 'o')));
  compile([...SANITIZER_FLAGS, ...FUZZ, ...others, ...objects, '-o', program]);
  const words = [Math.ceil(seconds), inputs ?? 0, seed, ...(isTold ? [TOLD_FD] : [])];
  const child = spawn(program, words.map(String), { stdio: ['pipe', 'pipe', 'inherit', 'pipe'] });
  child.stdin!.on('error', () => {});
  child.stdin!.end(seedFlights());
  return child;
}

/** What it says of all flights when it ends; rejects where it ended otherwise than well, or with none of a kind. */
export async function endFuzz(child: ChildProcess): Promise<string> {
  const said: Buffer[] = [];
  child.stdout!.on('data', (chunk: Buffer) => said.push(chunk));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once('close', (...how) => resolve(how));
  });
  if (code !== 0) throw new Error(`the native reader ended with ${signal ?? code}`);
  const words = Buffer.concat(said).toString().trim();
  assertEach(countsIn(words));
  return words;
}

/** The native reader of QUIC's Initial packets alone, under the sanitizers, as fast as the processor makes damaged flights. */
export async function soakNativeFlights(options: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const said = await endFuzz(startFuzz(directory, options, false));
    console.log(`no finding of the sanitizers, no answer that repeats change; ${said}`);
  });
}
