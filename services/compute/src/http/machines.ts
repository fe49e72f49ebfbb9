import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HttpServer } from '@skerry/kit';
import { AppError, type OwnerOperation } from '@skerry/protocol';
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import { IMAGE_FILES } from '../images/image.ts';
import { isFileImage } from '../images/network-file.ts';
import type { ImageStore } from '../images/store.ts';
import type { Backup, Backups } from '../instances/backups.ts';
import type { Keeper } from '../instances/keeper.ts';
import { eraseReleased, listReleased } from '../instances/released.ts';
import { reinstall, restoreDisk } from '../instances/replace.ts';
import {
  createSnapshot,
  deleteSnapshot,
  listSnapshots,
  parseSnapshotName,
  revertToSnapshot,
  type Snapshot,
} from '../instances/snapshots.ts';
import type { Worker } from '../instances/worker.ts';
import { checkBody, type OwnerAccess, type SignedRequest, signedRequestOf } from '../owner/access.ts';
import type { BackupLinks } from '../owner/links.ts';
import { KeptBodies } from './kept-bodies.ts';
import { receiveFile } from './receive-file.ts';

export interface MachineRoutes {
  readonly dataDir: string;
  readonly keeper: Keeper;
  readonly access: OwnerAccess;
  readonly backups: Backups;
  readonly links: BackupLinks;
  readonly images: ImageStore;
  readonly now: () => number;
}

const Ref = Type.Object({ ref: Type.String({ pattern: '^[0-9a-f]{64}$' }) });
const RefAndId = Type.Object({ ...Ref.properties, id: Type.String({ pattern: '^[0-9a-f]{16}$' }) });
const RefAndName = Type.Object({ ...Ref.properties, name: Type.String({ maxLength: 64 }) });
const LogsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
});
const Link = Type.Object({ expires: Type.Optional(Type.Number()), signature: Type.Optional(Type.String()) });

const LOG_LINES_DEFAULT = 1_000;
const GIB = 1024 ** 3;
const OCTETS = 'application/octet-stream';

const iso = (timeMs: number) => new Date(timeMs).toISOString();
const snapshotView = ({ name, createdAtMs }: Snapshot) => ({ name, created_at: iso(createdAtMs) });

/** What only the owner of an instance may ask of its node. Every request is signed (docs/operating.md, "Owner operations"). */
export function addMachineRoutes(app: HttpServer, routes: MachineRoutes): void {
  const { keeper, access } = routes;
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, rateClass: 'authenticated' };
  });
  const bodies = new KeptBodies();
  const signedOf = (request: FastifyRequest) =>
    signedRequestOf(request, isFile(request) ? undefined : bodies.of(request));
  /** The worker of an instance, for whoever may operate it: an unknown instance is not told apart before the signature is checked. */
  const permit = async (request: FastifyRequest, ref: string): Promise<Permitted> => {
    const signed = signedOf(request);
    const worker = keeper.find(ref);
    if (!worker) {
      await access.identify(signed);
      throw new AppError('INSTANCE_NOT_FOUND', 'this node does not look after an instance with this id');
    }
    return { worker, operation: await access.permit(signed, worker.record.wanted.owner) };
  };
  app.addHook('preParsing', async (request, reply, payload) =>
    isFile(request) ? payload : bodies.keep(request, reply, payload),
  );
  app.addContentTypeParser(OCTETS, (_request, body, done) => done(null, body));
  addPower(app, permit);
  addDisks(app, routes, permit, signedOf);
  addSnapshots(app, permit);
  addBackups(app, routes, permit);
  app.get(
    '/control/machine/:ref/logs',
    { schema: { params: Ref, querystring: LogsQuery } },
    async (request) => {
      const { worker } = await permit(request, request.params.ref);
      const lines = await worker.console.read(request.query.limit ?? LOG_LINES_DEFAULT);
      return lines.map(({ atMs, text }) => ({
        SYSLOG_IDENTIFIER: `vm-${request.params.ref}-stdout`,
        MESSAGE: text,
        file: 'console',
        // Microseconds, as in systemd's journal.
        __REALTIME_TIMESTAMP: String(atMs * 1000),
      }));
    },
  );
}

interface Permitted {
  readonly worker: Worker;
  readonly operation: OwnerOperation;
}
type Permit = (request: FastifyRequest, ref: string) => Promise<Permitted>;

/** A disk image that is sent: it is read where it goes, and compared with what was signed before it is used. */
const isFile = ({ routeOptions, headers }: FastifyRequest) =>
  routeOptions.config.watchesItsBody === true && headers['content-type']?.startsWith(OCTETS) === true;

function addPower(app: HttpServer, permit: Permit): void {
  app.post('/control/machine/:ref/stop', { schema: { params: Ref } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    await worker.ask(async (bench) => {
      await bench.stop();
      await bench.remember({ isPoweredOff: true, isOwnerStopped: true });
    });
    return { status: 'stopped', vm_hash: request.params.ref };
  });
  app.post('/control/machine/:ref/reboot', { schema: { params: Ref } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    await worker.ask(async (bench) => {
      await bench.stop();
      await bench.remember({ isPoweredOff: false, isOwnerStopped: false, failure: null });
    });
    return { status: 'rebooting', vm_hash: request.params.ref };
  });
}

function addDisks(
  app: HttpServer,
  routes: MachineRoutes,
  permit: Permit,
  signedOf: (request: FastifyRequest) => SignedRequest,
): void {
  const { dataDir, keeper, access, backups, images, now } = routes;
  app.post('/control/machine/:ref/reinstall', { schema: { params: Ref } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    await worker.ask((bench) => reinstall(bench, dataDir, now()));
    return { status: 'reinstalling', vm_hash: request.params.ref };
  });
  app.post('/control/machine/:ref/erase', { schema: { params: Ref } }, async (request) => {
    const { ref } = request.params;
    const operation = await access.identify(signedOf(request));
    const { address: sender } = operation;
    const worker = keeper.find(ref);
    if (worker && worker.record.wanted.owner === sender)
      throw new AppError('INSTANCE_BUSY', 'the instance is in use; forget it first, or reinstall it');
    const isOwn = (await listReleased(dataDir)).some((one) => one.id === ref && one.owner === sender);
    if (!isOwn)
      throw new AppError('INSTANCE_NOT_FOUND', 'this node keeps no disk of yours for this instance');
    await access.note(operation, sender);
    return { status: 'erased', vm_hash: ref, disks: await eraseReleased(dataDir, ref, sender) };
  });
  app.post(
    '/control/machine/:ref/restore',
    { schema: { params: Ref }, config: { watchesItsBody: true }, bodyLimit: Number.MAX_SAFE_INTEGER },
    async (request) => {
      const { ref } = request.params;
      const { worker, operation } = await permit(request, ref);
      const { body } = request;
      if (isFile(request)) {
        const upload = join(dataDir, `upload-${ref}-${request.id.replaceAll(/[^A-Za-z0-9]/g, '')}.tmp`);
        try {
          checkBody(operation, await receiveFile(body as never, upload, worker.record.wanted.diskGib * GIB));
          await worker.ask((bench) => restoreDisk(bench, upload, dataDir, now()));
        } finally {
          await rm(upload, { force: true });
        }
      } else {
        const { backup_id: id, snapshot, volume_ref: file } = (body ?? {}) as Record<string, unknown>;
        if (typeof file === 'string') {
          if (!isFileImage(file))
            throw new AppError('INVALID_HASH', 'volume_ref is the hash of a stored file');
          const { directory } = await images.ensure(file, () => {});
          await worker.ask((bench) => restoreDisk(bench, join(directory, IMAGE_FILES.disk), dataDir, now()));
        } else if (snapshot !== undefined) {
          const name = parseSnapshotName(snapshot);
          await worker.ask((bench) => revertToSnapshot(bench, name));
        } else {
          const { path } = await backups.find(ref, String(id));
          await worker.ask((bench) => restoreDisk(bench, path, dataDir, now()));
        }
      }
      worker.wake();
      return { status: 'restored', vm_hash: ref };
    },
  );
}

function addSnapshots(app: HttpServer, permit: Permit): void {
  const path = '/control/machine/:ref/snapshots';
  app.get(path, { schema: { params: Ref } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    const list = await worker.ask(async ({ directory, record }) =>
      record.base === null ? [] : listSnapshots(directory),
    );
    return { snapshots: list.map(snapshotView) };
  });
  app.post(path, { schema: { params: Ref } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    const name = parseSnapshotName((request.body as { name?: unknown } | null)?.name);
    const list = await worker.ask((bench) => createSnapshot(bench, name));
    return { snapshots: list.map(snapshotView) };
  });
  app.delete(`${path}/:name`, { schema: { params: RefAndName } }, async (request) => {
    const { worker } = await permit(request, request.params.ref);
    const name = parseSnapshotName(request.params.name);
    const list = await worker.ask((bench) => deleteSnapshot(bench, name));
    return { snapshots: list.map(snapshotView) };
  });
}

function addBackups(app: HttpServer, { backups, links, now }: MachineRoutes, permit: Permit): void {
  const path = '/control/machine/:ref/backup';
  const view = (ref: string, backup: Backup) => ({
    backup_id: backup.id,
    state: backup.state,
    reason: backup.reason,
    size: backup.sizeBytes,
    checksum: backup.sha256 && `sha256:${backup.sha256}`,
    created_at: iso(backup.createdAtMs),
    expires_at: iso(backup.expiresAtMs),
    download_url: backup.state === 'done' ? links.pathOf(ref, backup.id, backup.expiresAtMs) : null,
    volumes: [],
  });
  app.get(path, { schema: { params: Ref } }, async (request) => {
    const { ref } = request.params;
    await permit(request, ref);
    return { backups: (await backups.list(ref)).map((one) => view(ref, one)) };
  });
  app.post(path, { schema: { params: Ref } }, async (request, reply) => {
    const { ref } = request.params;
    const { worker } = await permit(request, ref);
    const begun = await backups.start(ref, (errand) => worker.ask(errand));
    return reply.status(202).send(view(ref, begun));
  });
  app.delete(`${path}/:id`, { schema: { params: RefAndId } }, async (request) => {
    const { ref, id } = request.params;
    await permit(request, ref);
    await backups.delete(ref, id);
    return { status: 'deleted', backup_id: id };
  });
  app.get(`${path}/:id`, { schema: { params: RefAndId, querystring: Link } }, async (request, reply) => {
    const { ref, id } = request.params;
    const { expires = 0, signature = '' } = request.query;
    links.check(ref, id, expires, signature, now());
    const { backup, path: file } = await backups.find(ref, id);
    return reply
      .headers({
        'content-type': OCTETS,
        'content-length': String(backup.sizeBytes),
        'content-disposition': `attachment; filename="${ref.slice(0, 12)}-${id}.qcow2"`,
      })
      .send(createReadStream(file));
  });
}
