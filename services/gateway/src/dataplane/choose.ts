import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { HaproxyDataPlane } from './haproxy/plane.ts';
import { findHaproxy } from './haproxy/program.ts';
import { buildNativePlane } from './native/build.ts';
import { NativeDataPlane } from './native/plane.ts';
import { checkReadyPlane } from './native/ready.ts';
import type { DataPlane, DataPlaneOptions, ListenPorts, QuicWish } from './port.ts';
import { TsDataPlane } from './ts/plane.ts';

export interface PlaneChoice {
  readonly kind: 'auto' | 'native' | 'typescript' | 'haproxy';
  readonly cacheDir: string;
  /** A native plane that is ready, in place of one that is compiled, and its SHA-256. */
  readonly program: string | undefined;
  readonly programSha256: string | undefined;
  readonly dataDir: string;
  /** Of the socket in it by which listeners pass from one process to the next: of another name where it is not to be that one's. */
  readonly handoverSocket: string;
  readonly replace: boolean;
  readonly replacedDrainMs: number;
  readonly onReplaced: () => void;
  /** Whether HAProxy is installed where it is wanted and missing. */
  readonly installPackages: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Longest path of a socket in the file system (unix(7)). */
const MAX_SOCKET_PATH_CHARS = 99;

/** Throws INVALID_CONFIG where HAProxy is missing, or is to do what it cannot. */
async function createHaproxyPlane(options: DataPlaneOptions, choice: PlaneChoice): Promise<HaproxyDataPlane> {
  if (options.quic === 'yes')
    throw new AppError(
      'INVALID_CONFIG',
      'HAProxy cannot pass QUIC on without opening it: set SKERRY_GATEWAY_DATA_PLANE=haproxy or SKERRY_GATEWAY_QUIC=yes, not both',
    );
  if (choice.replace)
    throw new AppError(
      'INVALID_CONFIG',
      'HAProxy passes no connections to another gateway: stop the one that runs, and start this one without SKERRY_GATEWAY_REPLACE',
    );
  const program = await findHaproxy(choice);
  return new HaproxyDataPlane({
    ...options,
    program,
    onTrouble: (details, message) => choice.log.error(details, message),
    onRecovery: (message) => choice.log.info(message),
  });
}

/** Says where QUIC is not forwarded though nobody turned it off, and why, and how it could lose less. */
export function tellQuic(wish: QuicWish, { noQuic, quicHint }: ListenPorts, log: Logger): void {
  if (noQuic !== null && wish !== 'no')
    log[wish === 'yes' ? 'warn' : 'info'](
      { why: noQuic },
      'QUIC (HTTP/3) is not forwarded; browsers use TCP',
    );
  if (quicHint !== undefined) log.info(quicHint);
}

/** The native data plane where it is wanted and can be built; otherwise the one in TypeScript, and the log says why. */
export async function createDataPlane(
  options: DataPlaneOptions,
  choice: PlaneChoice,
): Promise<{ plane: DataPlane; name: 'native' | 'typescript' | 'haproxy' }> {
  const { kind, cacheDir, dataDir, replace, replacedDrainMs, onReplaced, log } = choice;
  if (options.quic === 'yes' && options.sharePort)
    throw new AppError(
      'INVALID_CONFIG',
      'a port for QUIC cannot be shared: set SKERRY_GATEWAY_QUIC=yes or SKERRY_GATEWAY_SHARE_PORT, not both',
    );
  if (kind === 'haproxy') return { plane: await createHaproxyPlane(options, choice), name: 'haproxy' };
  const onTrouble = (details: object, message: string) => log.error(details, message);
  const typescript = () =>
    ({ plane: new TsDataPlane({ ...options, onTrouble }), name: 'typescript' }) as const;
  if (kind === 'typescript') return typescript();
  const { program, programSha256 } = choice;
  const built =
    program === undefined ? await buildNativePlane(cacheDir) : await checkReadyPlane(program, programSha256);
  if ('missing' in built) {
    if (program !== undefined)
      throw new AppError('INVALID_CONFIG', `SKERRY_GATEWAY_PROGRAM cannot be used: ${built.missing}`);
    const message = `the native data plane cannot be built: ${built.missing}`;
    if (kind === 'native') throw new AppError('INVALID_CONFIG', message);
    log.warn(`${message}; using the TypeScript data plane`);
    return typescript();
  }
  const path = join(dataDir, choice.handoverSocket);
  await mkdir(dataDir, { recursive: true });
  const handover = { path, replace, drainMs: replacedDrainMs, onReplaced };
  const isShort = Buffer.byteLength(path) <= MAX_SOCKET_PATH_CHARS;
  if (!isShort)
    log.warn({ path }, 'this path is too long for a socket: a new gateway cannot take over listeners');
  const plane = new NativeDataPlane({
    ...options,
    path: built.path,
    ...(isShort ? { handover } : {}),
    onTrouble,
    onRecovery: (message) => log.info(message),
  });
  return { plane, name: 'native' };
}
