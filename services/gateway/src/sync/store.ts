import { join } from 'node:path';
import { type Logger, makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import { AppError, createParser } from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';
import { type AddressPolicy, type Instance, parseInstance, type SourceInstance } from '../table/instance.ts';

/** What survives a restart: the last good table, and how far the event stream was read. */
export interface StoredState {
  readonly instances: readonly Instance[];
  readonly cursor: string | undefined;
  /** Unix seconds. */
  readonly lastSyncTime: number;
}

const FORMAT = 1;
const FILE = 'routes.json';

const StoredFile = Type.Object({
  format: Type.Literal(FORMAT),
  cursor: Type.Union([Type.String(), Type.Null()]),
  last_sync_time: Type.Number(),
  instances: Type.Array(Type.Unknown()),
});
const parseFile = createParser(StoredFile, FILE);

/** What a file of an older release says of reasons. */
const STORED = 'STORED';

const toSource = (instance: Instance): SourceInstance => ({
  instance_id: instance.hash,
  created_at: instance.createdAt,
  effective_at: instance.effectiveAt,
  placed: instance.placed,
  ipv6: instance.ipv6 ?? instance.refusedIpv6 ?? '',
  desired: instance.desired,
  ...(instance.proxyHeader ? { firewall: { proxyProtocol: true } } : {}),
  phase: instance.phase,
  reason: instance.reason === null ? null : { code: instance.reasonCode ?? STORED, message: instance.reason },
});

/** Replaces the file as a whole: at any moment, also after a power cut, it is the old one or the new one. */
export async function writeState(dataDir: string, state: StoredState): Promise<void> {
  const text = JSON.stringify({
    format: FORMAT,
    cursor: state.cursor ?? null,
    last_sync_time: state.lastSyncTime,
    instances: state.instances.map(toSource),
  });
  await makeDirectory(dataDir, 0o755);
  await writeFileAtomically(join(dataDir, FILE), text, 0o644);
}

/** The stored state; undefined where there is none, or none that can be read: the next full sync makes a new one. */
export async function readState(
  dataDir: string,
  policy: AddressPolicy,
  log: Logger,
): Promise<StoredState | undefined> {
  const path = join(dataDir, FILE);
  const text = await readTextIfAny(path);
  if (text === undefined) return undefined;
  try {
    const file = parseFile(JSON.parse(text));
    return {
      instances: file.instances.map((one) => parseInstance(one, policy)),
      cursor: file.cursor ?? undefined,
      lastSyncTime: file.last_sync_time,
    };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof AppError)) throw error;
    log.warn({ err: error, path }, 'the stored table cannot be read; rebuilding it');
    return undefined;
  }
}
