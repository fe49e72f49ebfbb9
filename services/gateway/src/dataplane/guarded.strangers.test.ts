import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { helloWire } from '../tls/testing/hello.ts';
import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import type { DataPlane, DataPlaneOptions } from './port.ts';
import { ask } from './testing/suite/http-client.ts';
import { NAME_UNKNOWN, openClient, openWorld, readAll, until } from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

type Options = DataPlaneOptions & Required<Pick<DataPlaneOptions, 'onTrouble'>>;
const path = await builtForTests();
const PLANES: Readonly<Record<string, (options: Options) => DataPlane>> = {
  native: (options) => new NativeDataPlane({ ...options, path }),
  typescript: (options) => new TsDataPlane(options),
};

for (const [name, create] of Object.entries(PLANES))
  describe(`a fault in what is told of connections, ${name}`, () => {
    test('ends neither the process nor the answer to who was refused, and is told of', async () => {
      const calls = { tell: 0, tellHttp: 0, onRefused: 0, explain: 0 };
      const troubles: string[] = [];
      const fail = (what: keyof typeof calls) => (): never => {
        calls[what]++;
        throw new Error('a fault');
      };
      const faulty = {
        access: { every: 1, tell: fail('tell'), tellHttp: fail('tellHttp') },
        onRefused: fail('onRefused'),
        explain: fail('explain'),
        onTrouble: (_details: object, said: string) => void troubles.push(said),
      };
      await using world = await openWorld((options) => create({ ...options, ...faulty }));
      for (let client = 1; client <= 2; client++) {
        const tls = await openClient(world.ports.https);
        tls.write(helloWire({ serverName: NAME_UNKNOWN }));
        assert.equal((await readAll(tls))[0], 21, 'an alert');
        assert.equal((await ask(world.ports.http, NAME_UNKNOWN)).status, 500);
        await until(() => calls.tell === client && calls.tellHttp === client && calls.onRefused >= client);
      }
      assert.equal((await world.plane.stats()).tls.figures.open, 0);
      assert.equal(troubles.length, 1, 'once in a while');
    });
  });
