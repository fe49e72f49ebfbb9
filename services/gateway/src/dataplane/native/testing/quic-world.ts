import assert from 'node:assert/strict';
import { after } from 'node:test';
import { VERSION_1, type Version } from '../../../quic/packet.ts';
import { cryptoFrame, initialDatagram, padded, sealInitial } from '../../../quic/testing/initials.ts';
import { helloMessage, joined } from '../../../tls/testing/hello.ts';
import type { QuicOutcome } from '../../figures.ts';
import type { DataPlaneLimits, DataPlaneOptions } from '../../port.ts';
import { openWorld, type World } from '../../testing/suite/world.ts';
import { SANITIZER_FLAGS } from '../build.ts';
import { NativeDataPlane, type NativePlaneOptions } from '../plane.ts';
import { builtForTests } from './built.ts';
import { Datagrams } from './datagrams.ts';

/** Under the sanitizers: what reads or writes where it must not ends the program, and the test. */
const path = await builtForTests(SANITIZER_FLAGS);
const troubles: string[] = [];
after(() => assert.deepEqual(troubles, []));

export const CLIENT = Uint8Array.of(1, 1, 1);
export const INSTANCE = Uint8Array.of(7, 7, 7, 7);
export const id = (fill: number) => new Uint8Array(8).fill(fill);

export interface QuicWorld extends World {
  readonly native: NativeDataPlane;
  readonly again: DataPlaneOptions;
  readonly instanceA: Datagrams;
  readonly instanceB: Datagrams;
  count(outcome: QuicOutcome): number;
}

export function createQuicPlane(
  options: DataPlaneOptions,
  more: Partial<NativePlaneOptions> = {},
): NativeDataPlane {
  return new NativeDataPlane({
    ...options,
    path,
    quic: 'yes',
    onTrouble: (details, text) => void troubles.push(`${text} ${JSON.stringify(details)}`),
    ...more,
  });
}

/** What a busy machine does late is no other case. */
const PATIENT = { helloTimeoutMs: 60_000, answerTimeoutMs: 60_000 };

/** The gateway with two instances that take datagrams; each test says what they answer. */
async function openOnce(
  limits: Partial<DataPlaneLimits> = {},
  more: Partial<NativePlaneOptions> = {},
): Promise<QuicWorld> {
  await using stack = new AsyncDisposableStack();
  let native: NativeDataPlane | undefined;
  let again: DataPlaneOptions | undefined;
  const world = stack.use(
    await openWorld(
      (options) => {
        again = options;
        native = createQuicPlane(options, more);
        return native;
      },
      { ...PATIENT, ...limits },
    ),
  );
  const instanceA = stack.use(await Datagrams.open('::1', world.upstreamHttpsPort));
  const instanceB = stack.use(await Datagrams.open('127.0.0.2', world.upstreamHttpsPort));
  const opened = stack.move();
  return {
    ...world,
    native: native!,
    again: again!,
    instanceA,
    instanceB,
    count: (outcome) => native!.stats().quic.outcomes[outcome],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** A port that was free for TCP need not be for UDP. */
const MAX_PORT_TRIES = 20;

export async function openQuicWorld(...args: Parameters<typeof openOnce>): Promise<QuicWorld> {
  for (let tries = 1; ; tries++) {
    try {
      return await openOnce(...args);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || tries === MAX_PORT_TRIES) throw error;
    }
  }
}

/** The plane finds all that was sent meanwhile at once. */
export async function whileItStands(
  { native }: Pick<QuicWorld, 'native'>,
  send: () => Promise<void>,
): Promise<void> {
  process.kill(native.pid!, 'SIGSTOP');
  try {
    await send();
  } finally {
    process.kill(native.pid!, 'SIGCONT');
  }
}

export const hello = (serverName: string | undefined, destination = id(9), version: Version = VERSION_1) =>
  initialDatagram([cryptoFrame(0, helloMessage({ serverName }))], { destination, source: CLIENT, version });

/** What an instance says first to a client with this first id. */
export const instanceInitial = (first: Uint8Array, source = INSTANCE) =>
  padded(
    sealInitial({
      ...{ destination: CLIENT, source, keysOf: first, side: 'server' },
      payload: new Uint8Array(1100),
    }),
  );
/** A packet of a connection that is open. */
export const short = (destination: Uint8Array, length = 60) =>
  joined(Uint8Array.of(0x41), destination, new Uint8Array(length).fill(0x55));
