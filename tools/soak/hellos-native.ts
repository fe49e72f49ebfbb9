import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SANITIZER_FLAGS } from '../../services/gateway/src/dataplane/native/build.ts';
import { helloMessage, helloWire, inRecords } from '../../services/gateway/src/tls/testing/hello.ts';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach, countsIn } from './run/counts.ts';

const GATEWAY = fileURLToPath(new URL('../../services/gateway/', import.meta.url));
const REAL = join(GATEWAY, 'src/tls/testing/real-hellos.json');
const NAME = 'farm-manage-desk-seek.skerry.localhost';

/** The native reader alone, under the sanitizers, as fast as the processor makes damaged hellos. */
export async function soakNativeHellos({ seconds, seed }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const program = join(directory, 'fuzz');
    const sources = [join(GATEWAY, 'src/tls/testing/fuzz.c'), join(GATEWAY, 'native/hello.c')];
    execFileSync('cc', ['-O2', '-g1', ...SANITIZER_FLAGS, ...sources, '-o', program], { stdio: 'inherit' });
    const corpus = [
      ...Object.values(JSON.parse(readFileSync(REAL, 'utf8')) as Record<string, string>).map((wire) =>
        Buffer.from(wire, 'base64'),
      ),
      helloWire({ serverName: `${NAME}.` }),
      ...[1, 50, 300].map((size) => inRecords(helloMessage({ serverName: NAME, keyShareBytes: 1216 }), size)),
      helloWire({ serverName: NAME, keyShareBytes: 20_000 }),
    ];
    const input = Buffer.concat(
      corpus.flatMap((wire) => {
        const length = Buffer.alloc(4);
        length.writeUInt32LE(wire.length);
        return [length, wire];
      }),
    );
    const said = execFileSync(program, [String(Math.ceil(seconds)), String(seed)], {
      input,
      stdio: ['pipe', 'pipe', 'inherit'],
      encoding: 'utf8',
    });
    console.log(`no finding of the sanitizers, no answer that depends on the pieces; ${said.trim()}`);
    assertEach(countsIn(said));
  });
}
