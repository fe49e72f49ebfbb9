import { ANY_HASH_PATTERN, HASH64_PATTERN } from '../../network-form/item-hash.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, Bytes, content, NO_PARAMETERS, type Operation, orNull } from '../operation.ts';

const ref = Type.String({ pattern: HASH64_PATTERN, description: 'item hash of the INSTANCE message' });
const RefParams = Type.Object({ ref });
const LogParams = Type.Object({
  ref: Type.String({
    pattern: ANY_HASH_PATTERN,
    description: 'item hash of the INSTANCE message, or of the PROGRAM message',
  }),
});
const BackupParams = Type.Object({
  ref,
  id: Type.String({ pattern: '^[0-9a-f]{16}$', description: 'the backup' }),
});
const SnapshotParams = Type.Object({
  ref,
  name: Type.String({ maxLength: 64, description: 'the snapshot' }),
});
const LogsQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 10_000, description: 'how many lines; 1000 by default' }),
    ),
  },
  { additionalProperties: false },
);
const LinkQuery = Type.Object(
  {
    expires: Type.Optional(Type.Number({ description: 'Unix seconds' })),
    signature: Type.Optional(Type.String({ description: 'of the link, by the node' })),
  },
  { additionalProperties: false },
);

export const LogLineView = Type.Object(
  {
    SYSLOG_IDENTIFIER: Type.String({ description: '`vm-`, the hash, and `-stdout`, `-stderr` or `-system`' }),
    MESSAGE: Type.String({ description: 'the line' }),
    file: Type.String({
      description:
        '`console` of an instance; of a program `stdout`, `stderr`, or `system` for what the node says of it',
    }),
    __REALTIME_TIMESTAMP: Type.String({ description: 'microseconds since 1970' }),
  },
  { title: 'LogLine' },
);
export type LogLineView = Static<typeof LogLineView>;

/** What `GET /control/machine/{ref}/stream_logs` says, a frame at a time: whether it is open, then line after line. */
export const LogFrame = Type.Object({
  status: Type.Optional(Type.String({ description: 'connected, or failed' })),
  reason: Type.Optional(Type.String({ description: 'why it failed' })),
  code: Type.Optional(Type.String({ description: 'the code of that error' })),
  type: Type.Optional(
    Type.String({ description: 'stdout, stderr (of programs), or system for what the node itself says' }),
  ),
  message: Type.Optional(Type.String({ description: 'the line' })),
});
export type LogFrame = Static<typeof LogFrame>;

export const SnapshotView = Type.Object(
  { name: Type.String(), created_at: Type.String({ format: 'date-time' }) },
  { title: 'Snapshot' },
);
export type SnapshotView = Static<typeof SnapshotView>;
const SnapshotsView = Type.Object({ snapshots: Type.Array(SnapshotView) }, { title: 'Snapshots' });

export const BackupView = Type.Object(
  {
    backup_id: Type.String(),
    state: Type.Enum(['running', 'done', 'failed']),
    reason: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
    size: orNull(Type.Integer({ description: 'bytes' })),
    checksum: orNull(Type.String({ description: '`sha256:` and 64 hexadecimal digits' })),
    created_at: Type.String({ format: 'date-time' }),
    expires_at: Type.String({ format: 'date-time' }),
    download_url: orNull(Type.String({ description: 'a path at the node' })),
    volumes: Type.Array(Type.Unknown()),
  },
  { title: 'Backup' },
);
export type BackupView = Static<typeof BackupView>;

const done = <S extends string>(status: S) =>
  Type.Object({ status: Type.Literal(status), vm_hash: Type.String() });

const ACCESS_ERRORS = [
  'BODY_TOO_LARGE',
  'INSTANCE_NOT_FOUND',
  'INSTANCE_NOT_READY',
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'NOT_PERMITTED',
  'REQUEST_REPEATED',
  'UPSTREAM_UNAVAILABLE',
  'UNEXPECTED_ANSWER',
] as const;
const TASK_ERRORS = [...ACCESS_ERRORS, 'INSTANCE_BUSY', 'VM_START_FAILED'] as const;
const DISK_ERRORS = [...TASK_ERRORS, 'STORAGE_FULL', 'IMAGE_UNAVAILABLE'] as const;

const owned = { tag: 'machines', rateClass: 'authenticated', params: RefParams } as const;
const act = <S extends string>(action: string, summary: string, status: S) =>
  ({
    ...owned,
    method: 'POST',
    path: `/control/machine/:ref/${action}`,
    summary,
    answers: { 200: done(status) },
    errors: DISK_ERRORS,
  }) as const satisfies Operation;

const EXPIRY_SECONDS_MAX = 7 * 86_400;
const Refusal = Type.Object({
  status: Type.Literal('error'),
  error: Type.String(),
  code: Type.String({
    description:
      'NO_CAPACITY where there is no room; else what is wrong with the request, such as INVALID_JSON or INVALID_CONTENT',
  }),
  reason: Type.Optional(Type.String({ description: 'the code, where there is no room' })),
});

/** What only the owner of an instance may ask of its node. Every request is signed (docs/operating.md, "Owner operations"). */
export const MACHINES_API = {
  reserveResources: {
    method: 'POST',
    path: '/control/reserve_resources',
    summary:
      'Keep room for a minute for an instance that the signer is about to publish; 400 where there is none',
    tag: 'machines',
    rateClass: 'authenticated',
    body: {
      kind: 'json',
      schema: Type.Object(
        {},
        { additionalProperties: true, description: 'content of an INSTANCE of the network form' },
      ),
    },
    answers: {
      200: Type.Object({ status: Type.Literal('reserved'), expires: Type.String({ format: 'date-time' }) }),
      400: Refusal,
    },
    errors: [
      'BODY_TOO_LARGE',
      'SIGNATURE_REQUIRED',
      'INVALID_SIGNATURE',
      'REQUEST_REPEATED',
      'INVALID_CONTENT',
      'UNKNOWN_FIELD',
      'UNKNOWN_IMAGE',
      'INVALID_SSH_KEY',
    ],
  },
  expireMachine: {
    ...owned,
    method: 'POST',
    path: '/control/machine/:ref/expire',
    summary: 'Stop the machine after a delay',
    body: {
      kind: 'json',
      schema: Type.Object({
        timeout: Type.Number({ minimum: 0, maximum: EXPIRY_SECONDS_MAX, description: 'seconds' }),
      }),
    },
    answers: {
      200: Type.Object({
        status: Type.Literal('expiring'),
        vm_hash: Type.String(),
        expires: Type.String({ format: 'date-time' }),
      }),
    },
    errors: [...TASK_ERRORS, 'INVALID_PARAMETERS'],
  },
  stopMachine: act('stop', 'Shut the machine down until it is started again', 'stopped'),
  rebootMachine: act('reboot', 'Restart the machine', 'rebooting'),
  reinstallMachine: {
    ...act('reinstall', 'Reinstall the disk from its image', 'reinstalling'),
    query: Type.Object(
      {
        erase_volumes: Type.Optional(
          Type.Enum(['true', 'false', 'True', 'False', '1', '0'], {
            description:
              'whether volumes that were made empty begin empty again; if so, the query has to be signed',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  },
  eraseMachine: {
    ...owned,
    method: 'POST',
    path: '/control/machine/:ref/erase',
    summary: 'Erase the disks set aside from a deleted instance, and its backups',
    answers: {
      200: Type.Object({
        status: Type.Literal('erased'),
        vm_hash: Type.String(),
        disks: Type.Integer({ description: 'how many' }),
      }),
    },
    errors: [...ACCESS_ERRORS, 'INSTANCE_BUSY'],
    deployed: {},
  },
  restoreMachine: {
    ...owned,
    method: 'POST',
    path: '/control/machine/:ref/restore',
    summary: 'Replace the disk with a snapshot, a backup, a stored file or the disk image in the body',
    body: {
      kind: 'stream',
      limitBytes: Number.MAX_SAFE_INTEGER,
      content: {
        'application/json': Type.Object({
          snapshot: Type.Optional(Type.String({ description: 'its name' })),
          backup_id: Type.Optional(Type.String()),
          volume_ref: Type.Optional(Type.String({ description: 'hash of a stored file' })),
        }),
        'application/octet-stream': Bytes,
      },
    },
    answers: { 200: done('restored') },
    errors: [
      ...DISK_ERRORS,
      'INVALID_HASH',
      'SNAPSHOT_NOT_FOUND',
      'BACKUP_NOT_FOUND',
      'FILE_TOO_LARGE',
      'FILE_CORRUPT',
      'INVALID_IMAGE',
      'REQUEST_TIMEOUT',
    ],
    deployed: { differs: 'also from a snapshot' },
  },
  readMachineLogs: {
    ...owned,
    method: 'GET',
    path: '/control/machine/:ref/logs',
    params: LogParams,
    summary: 'Read the last lines of its console, or of what a program wrote here since the node started',
    query: LogsQuery,
    answers: { 200: Type.Array(LogLineView) },
    errors: ACCESS_ERRORS,
    deployed: {},
  },
  listSnapshots: {
    ...owned,
    method: 'GET',
    path: '/control/machine/:ref/snapshots',
    summary: 'List snapshots of the disk',
    query: NO_PARAMETERS,
    answers: { 200: SnapshotsView },
    errors: TASK_ERRORS,
  },
  createSnapshot: {
    ...owned,
    method: 'POST',
    path: '/control/machine/:ref/snapshots',
    summary: 'Take a snapshot of the disk',
    body: { kind: 'stream', content: { 'application/json': Type.Object({ name: Type.String() }) } },
    answers: { 200: SnapshotsView },
    errors: [...TASK_ERRORS, 'INVALID_PARAMETERS', 'SNAPSHOT_EXISTS', 'TOO_MANY_COPIES', 'STORAGE_FULL'],
  },
  deleteSnapshot: {
    ...owned,
    method: 'DELETE',
    path: '/control/machine/:ref/snapshots/:name',
    summary: 'Delete a snapshot',
    params: SnapshotParams,
    answers: { 200: SnapshotsView },
    errors: [...TASK_ERRORS, 'SNAPSHOT_NOT_FOUND'],
  },
  listBackups: {
    ...owned,
    method: 'GET',
    path: '/control/machine/:ref/backup',
    summary: 'List backups on this node',
    query: NO_PARAMETERS,
    answers: { 200: Type.Object({ backups: Type.Array(BackupView) }) },
    errors: ACCESS_ERRORS,
    deployed: {},
  },
  startBackup: {
    ...owned,
    method: 'POST',
    path: '/control/machine/:ref/backup',
    summary: 'Start a backup of the disk',
    answers: { 202: BackupView },
    errors: [...TASK_ERRORS, 'TOO_MANY_COPIES', 'STORAGE_FULL'],
    deployed: {},
  },
  deleteBackup: {
    ...owned,
    method: 'DELETE',
    path: '/control/machine/:ref/backup/:id',
    summary: 'Delete a backup',
    params: BackupParams,
    answers: { 200: Type.Object({ status: Type.Literal('deleted'), backup_id: Type.String() }) },
    errors: [...ACCESS_ERRORS, 'BACKUP_NOT_FOUND'],
    deployed: {},
  },
  readBackup: {
    tag: 'machines',
    rateClass: 'authenticated',
    method: 'GET',
    path: '/control/machine/:ref/backup/:id',
    summary: 'Download a backup; the link itself grants access',
    params: BackupParams,
    query: LinkQuery,
    answers: { 200: content('a disk image', 'application/octet-stream') },
    errors: ['BACKUP_NOT_FOUND', 'INVALID_SIGNATURE'],
    deployed: {},
  },
} as const satisfies Api;

/** A WebSocket. Its first frame is signed, not its request. */
export const CONSOLE_API = {
  streamMachineLogs: {
    ...owned,
    method: 'GET',
    path: '/control/machine/:ref/stream_logs',
    params: LogParams,
    summary: 'The lines of its console, or of a program, as they are written (WebSocket)',
    answers: {
      101: {
        description:
          'frames of JSON: the first one, from the client, is `{auth: {"X-SignedPubKey", "X-SignedOperation"}}`; the node answers `{status, reason?}`, then sends `{type, message}` for each line',
        content: {},
      },
    },
    errors: ['UPGRADE_REQUIRED', 'OVERLOADED'],
  },
} as const satisfies Api;
