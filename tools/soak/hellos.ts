import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mutate, randomFrom, readCut } from '../../services/gateway/src/tls/testing/fuzz.ts';
import { buildNativeReader, readNatively } from '../../services/gateway/src/tls/testing/native-reader.ts';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach } from './run/counts.ts';

const BATCH = 20_000;
const REAL = new URL('../../services/gateway/src/tls/testing/real-hellos.json', import.meta.url);

/** Damaged ClientHellos through both readers, the native one under the sanitizers: they must say the same. */
export async function soakHellos({ seconds, seed }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const reader = await buildNativeReader(directory);
    const corpus = Object.values(JSON.parse(readFileSync(REAL, 'utf8')) as Record<string, string>).map(
      (wire) => new Uint8Array(Buffer.from(wire, 'base64')),
    );
    const random = randomFrom(seed);
    const kinds = { need_more: 0, not_tls: 0, server_name: 0, no_server_name: 0, malformed: 0 };
    let count = 0;
    for (const end = performance.now() + seconds * 1000; performance.now() < end; count += BATCH) {
      const hellos = Array.from({ length: BATCH }, () => mutate(random, corpus));
      const theirs = await readNatively(reader, hellos);
      for (const [index, hello] of hellos.entries()) {
        assert.deepEqual(theirs[index], readCut(hello), Buffer.from(hello.wire).toString('hex'));
        kinds[theirs[index]!.kind]++;
      }
    }
    const each = Object.entries(kinds)
      .map(([kind, many]) => `${kind} ${many}`)
      .join(', ');
    console.log(`${count} hellos, no difference, no finding of the sanitizers (${each})`);
    assertEach(kinds);
  });
}
