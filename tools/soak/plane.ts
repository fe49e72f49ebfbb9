import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { buildNativePlane, SANITIZER_FLAGS } from '../../services/gateway/src/dataplane/native/build.ts';
import { NativeDataPlane } from '../../services/gateway/src/dataplane/native/plane.ts';
import {
  ADDRESS_A,
  ADDRESS_B,
  NAME_A,
  NAME_B,
  NAME_DEAD,
  openClient,
  openWorld,
  readAll,
  until,
} from '../../services/gateway/src/dataplane/testing/suite/world.ts';
import { mutate, randomFrom } from '../../services/gateway/src/tls/testing/fuzz.ts';
import { helloWire } from '../../services/gateway/src/tls/testing/hello.ts';
import { type SoakOptions, withDirectory } from './options.ts';
import { assertEach } from './run/counts.ts';

const AT_ONCE = 60;
const MAX_BODY_BYTES = 600_000;
const EVERY_NAME = [NAME_A, NAME_B, NAME_DEAD, 'nobody.example'];

/** Clients of every kind against the native plane under the sanitizers, with routes that change all the while. */
export async function soakPlane({ seconds, seed }: SoakOptions): Promise<void> {
  await withDirectory(async (directory) => {
    const built = await buildNativePlane(directory, SANITIZER_FLAGS);
    if ('missing' in built) throw new Error(`the native plane cannot be built: ${built.missing}`);
    const troubles: unknown[] = [];
    const onTrouble = (details: object, message: string) => troubles.push([message, details]);
    await using world = await openWorld(
      (options) => new NativeDataPlane({ ...options, path: built.path, onTrouble }),
      { helloTimeoutMs: 5_000, idleTimeoutMs: 8_000, maxUndecided: 4 * AT_ONCE },
    );
    for (const instance of [world.tlsA, world.tlsB]) instance.handle = (socket) => void socket.pipe(socket);
    const random = randomFrom(seed);
    const counts = { echoed: 0, abused: 0, changes: 0 };
    const end = performance.now() + seconds * 1000;

    const echo = async (client: Socket) => {
      const data = Buffer.concat([helloWire({ serverName: NAME_A }), randomBytes(random(MAX_BODY_BYTES))]);
      client.end(data);
      assert.ok((await readAll(client)).equals(data), 'what came back is not what was sent');
      counts.echoed++;
    };
    const abuse = async (client: Socket) => {
      const serverName = EVERY_NAME[random(EVERY_NAME.length)]!;
      const wire = random(2) ? mutate(random, [helloWire({ serverName })]).wire : helloWire({ serverName });
      client.write(Buffer.concat([wire, Buffer.alloc(random(100_000))]));
      if (random(3) === 0) client.pause();
      else client.resume();
      await new Promise((resolve) => setTimeout(resolve, random(30)));
      if (random(2)) client.resetAndDestroy();
      else client.destroy();
      counts.abused++;
    };
    const visitor = async () => {
      while (performance.now() < end) {
        const client = await openClient(world.ports.https);
        await (random(3) === 0 ? echo(client) : abuse(client));
        client.destroy();
      }
    };
    const changer = async () => {
      while (performance.now() < end) {
        const hostname = random(4) === 0 ? NAME_B : `n${random(3000)}.example`;
        world.plane.applyChanges([{ hostname, ipv6: [null, ADDRESS_A, ADDRESS_B][random(3)]! }]);
        counts.changes++;
        if (counts.changes % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all([changer(), ...Array.from({ length: AT_ONCE }, visitor)]);
    await until(async () => (await world.plane.stats()).tls.figures.open === 0, 30_000);
    await world.plane.close();
    assert.deepEqual(troubles, []);
    assertEach(counts);
    console.log(
      `${counts.echoed} echoes intact, ${counts.abused} abusive clients, ${counts.changes} route changes; nothing left open, no finding`,
    );
  });
}
