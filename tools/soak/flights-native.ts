import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SANITIZER_FLAGS } from '../../services/gateway/src/dataplane/native/build.ts';
import { inDatagrams } from '../../services/gateway/src/quic/testing/flights.ts';
import { cryptoFrame } from '../../services/gateway/src/quic/testing/initials.ts';
import { FLIGHT_SOURCES } from '../../services/gateway/src/quic/testing/native-reader.ts';
import { REAL_FLIGHTS } from '../../services/gateway/src/quic/testing/real-flights.ts';
import { helloMessage } from '../../services/gateway/src/tls/testing/hello.ts';
import { type SoakOptions, withDirectory } from './options.ts';

const FUZZ = fileURLToPath(new URL('../../services/gateway/src/quic/testing/fuzz.c', import.meta.url));
const NAME = 'farm-manage-desk-seek.skerry.localhost';

/** The native reader of QUIC's Initial packets alone, under the sanitizers, as fast as the processor makes damaged flights. */
export async function soakNativeFlights({ seconds, seed }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const program = join(directory, 'fuzz');
    const compiled = ['-O2', '-g1', ...SANITIZER_FLAGS, FUZZ, ...FLIGHT_SOURCES, '-o', program];
    execFileSync('cc', compiled, { stdio: 'inherit' });
    const frames = [cryptoFrame(0, helloMessage({ serverName: NAME }))];
    const corpus = [
      ...REAL_FLIGHTS.flatMap(({ datagrams }) => datagrams),
      ...inDatagrams([...frames, ...frames], {}, () => 0),
    ];
    const input = Buffer.concat(
      corpus.flatMap((wire) => [Buffer.from(Uint32Array.of(wire.length).buffer), Buffer.from(wire)]),
    );
    const said = execFileSync(program, [String(Math.ceil(seconds)), String(seed)], {
      input,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    console.log(`no finding of the sanitizers, no answer that repeats change; ${String(said).trim()}`);
  });
}
