import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { buildNativePlane } from './native/build.ts';
import { NativeDataPlane } from './native/plane.ts';
import { dataPlaneSuite } from './suite.ts';

const directory = await mkdtemp(join(tmpdir(), 'skerry-plane-'));
after(() => rm(directory, { recursive: true, force: true }));
const built = await buildNativePlane(directory);
if ('missing' in built) throw new Error(`the native data plane cannot be built here: ${built.missing}`);
const onTrouble = (details: object, message: string) => console.error(message, details);

dataPlaneSuite(
  'native data plane',
  (options) => new NativeDataPlane({ ...options, path: built.path, onTrouble }),
);
