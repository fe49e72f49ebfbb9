import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NATIVE } from '../../dataplane/native/build.ts';
import { askReader, buildReader, uint32s } from '../../testing/native-reader.ts';
import type { HelloAnswer } from '../client-hello.ts';

/** Bytes, and after how many of them the reader is asked each time. */
export interface CutHello {
  readonly wire: Uint8Array;
  readonly ends: readonly number[];
}

const KINDS = ['need_more', 'not_tls', 'server_name', 'no_server_name', 'malformed'] as const;

export function buildNativeReader(cacheDir: string): Promise<string> {
  const sources = [fileURLToPath(new URL('read-hellos.c', import.meta.url)), join(NATIVE, 'hello.c')];
  return buildReader({ name: 'read-hellos', sources }, cacheDir);
}

/** What the native parser says of each hello, for comparison with ours. */
export const readNatively = (path: string, hellos: readonly CutHello[]): Promise<HelloAnswer[]> =>
  askReader(
    path,
    KINDS,
    hellos.map(({ wire, ends }) => [uint32s(wire.length, ends.length), wire, uint32s(...ends)]),
  );
