import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Logger, makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import { loadOrCreateText } from '@skerry/kit/files';
import { AppError, createParser } from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';
import type { Route } from '../dataplane/port.ts';
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
/** Of a node's front, which may have the data directory of a gateway. */
const DOMAINS_FILE = 'domains.json';

const StoredFile = Type.Object({
  format: Type.Literal(FORMAT),
  cursor: Type.Union([Type.String(), Type.Null()]),
  last_sync_time: Type.Number(),
  instances: Type.Array(Type.Unknown()),
});
const parseFile = createParser(StoredFile, FILE);

const StoredDomains = Type.Object({
  format: Type.Literal(FORMAT),
  routes: Type.Array(
    Type.Object({
      hostname: Type.String(),
      ipv6: Type.String(),
      proxyHeader: Type.Optional(Type.Boolean()),
    }),
  ),
});
const parseDomains = createParser(StoredDomains, DOMAINS_FILE);

/** Whose text the gateway says it is: it has no key by which it could be told from another one. */
export const ID_FILE = 'id';
const ID_BYTES = 16;

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
async function writeStored(dataDir: string, name: string, stored: object): Promise<void> {
  await makeDirectory(dataDir, 0o755);
  await writeFileAtomically(join(dataDir, name), JSON.stringify({ format: FORMAT, ...stored }), 0o644);
}

/** What is stored; undefined where there is nothing, or nothing that can be read: what is read next makes a new one. */
async function readStored<T>(path: string, parse: (file: unknown) => T, log: Logger): Promise<T | undefined> {
  const text = await readTextIfAny(path);
  if (text === undefined) return undefined;
  try {
    return parse(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof AppError)) throw error;
    log.warn({ err: error, path }, 'the stored table cannot be read; rebuilding it');
    return undefined;
  }
}

export async function writeState(dataDir: string, state: StoredState): Promise<void> {
  await writeStored(dataDir, FILE, {
    cursor: state.cursor ?? null,
    last_sync_time: state.lastSyncTime,
    instances: state.instances.map(toSource),
  });
}

export const readState = (
  dataDir: string,
  policy: AddressPolicy,
  log: Logger,
): Promise<StoredState | undefined> =>
  readStored(
    join(dataDir, FILE),
    (stored) => {
      const file = parseFile(stored);
      return {
        instances: file.instances.map((one) => parseInstance(one, policy)),
        cursor: file.cursor ?? undefined,
        lastSyncTime: file.last_sync_time,
      };
    },
    log,
  );

/** The custom domains of a node, as it last told them. */
export const writeDomains = (dataDir: string, routes: readonly Route[]): Promise<void> =>
  writeStored(dataDir, DOMAINS_FILE, { routes });

export const readDomains = (dataDir: string, log: Logger): Promise<readonly Route[] | undefined> =>
  readStored(join(dataDir, DOMAINS_FILE), (stored) => parseDomains(stored).routes, log);

/** The id of a data directory, made with the first start. Undefined where it cannot be kept: a gateway routes without it. */
export async function loadId(dataDir: string, log: Logger): Promise<string | undefined> {
  const path = join(dataDir, ID_FILE);
  try {
    await makeDirectory(dataDir, 0o755);
    return await loadOrCreateText(path, () => randomBytes(ID_BYTES).toString('hex'), 0o644);
  } catch (error) {
    log.warn({ err: error, path }, 'the id of this gateway cannot be kept; it goes on without one');
    return undefined;
  }
}
