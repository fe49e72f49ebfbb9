import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { answer, type Handlers, type HttpServer, serveAll } from '@skerry/kit';
import {
  AppError,
  checkImage,
  convertNetworkContent,
  type InstanceContent,
  type OwnerOperation,
} from '@skerry/protocol';
import { type BackupView, MACHINES_API } from '@skerry/protocol/api/compute/machines';
import type { FastifyRequest } from 'fastify';
import { IMAGE_FILES } from '../images/image.ts';
import { isFileImage } from '../images/network-file.ts';
import type { ImageStore } from '../images/store.ts';
import type { Backup, Backups } from '../instances/disks/backups.ts';
import { eraseReleased, listReleased } from '../instances/disks/released.ts';
import { reinstall, restoreDisk } from '../instances/disks/replace.ts';
import {
  createSnapshot,
  deleteSnapshot,
  listSnapshots,
  parseSnapshotName,
  revertToSnapshot,
  type Snapshot,
} from '../instances/disks/snapshots.ts';
import type { InstanceWorker } from '../instances/worker/worker.ts';
import { checkBody, type SignedRequest, signedRequestOf } from '../owner/access.ts';
import type { BackupLinks } from '../owner/links.ts';
import { absent } from './absent.ts';
import { KeptBodies } from './kept-bodies.ts';
import { type LogSources, logLineView, openLog } from './log-source.ts';
import { receiveFile } from './receive-file.ts';

export interface MachineRoutes extends LogSources {
  readonly dataDir: string;
  readonly backups: Backups;
  readonly links: BackupLinks;
  readonly images: ImageStore;
  readonly now: () => number;
}

const LOG_LINES_DEFAULT = 1_000;
const GIB = 1024 ** 3;
const OCTETS = 'application/octet-stream';

/** Of a content that is no message yet. */
const NO_HASH = '0'.repeat(64);

const iso = (timeMs: number) => new Date(timeMs).toISOString();
const snapshotView = ({ name, createdAtMs }: Snapshot) => ({ name, created_at: iso(createdAtMs) });

/** What only the owner of an instance may ask of its node. Every request is signed (docs/operating.md, "Owner operations"). */
export function addMachineRoutes(app: HttpServer, routes: MachineRoutes): void {
  const { instances, access } = routes;
  const bodies = new KeptBodies();
  const signedOf = (request: FastifyRequest) =>
    signedRequestOf(request, isFile(request) ? undefined : bodies.of(request));
  /** The worker of an instance, for whoever may operate it: an unknown instance is not told apart before the signature is checked. */
  const permit = async (request: FastifyRequest, ref: string, sign = signedOf): Promise<Permitted> => {
    const signed = sign(request);
    const worker = instances.find(ref);
    if (!worker) {
      await access.identify(signed);
      throw absent(instances, ref);
    }
    return { worker, operation: await access.permit(signed, worker.record.wanted.owner) };
  };
  // Deployed clients sign neither query nor body: where these decide little, that is enough.
  const looselySignedOf = (request: FastifyRequest) => ({ ...signedOf(request), isLoose: true });
  const permitLoosely: Permit = (request, ref) => permit(request, ref, looselySignedOf);
  app.addHook('preParsing', async (request, reply, payload) =>
    isFile(request) ? payload : bodies.keep(request, reply, payload),
  );
  app.addContentTypeParser(OCTETS, (_request, body, done) => done(null, body));
  const handlers = {
    ...powerHandlers(permit),
    expireMachine: expireHandler(routes, permitLoosely),
    reserveResources: reserveHandler(routes, looselySignedOf),
    ...diskHandlers(routes, { permit, permitLoosely }, signedOf),
    ...snapshotHandlers(permit),
    ...backupHandlers(routes, permitLoosely),
    restoreMachine: restoreHandler(routes, permit),
    readMachineLogs: logsHandler(routes, signedOf),
  };
  serveAll(app, MACHINES_API, handlers, (operation) =>
    operation === MACHINES_API.restoreMachine ? { config: { watchesItsBody: true } } : {},
  );
}

type MachineHandlers = Handlers<typeof MACHINES_API>;

interface Permitted {
  readonly worker: InstanceWorker;
  readonly operation: OwnerOperation;
}
type Permit = (request: FastifyRequest, ref: string) => Promise<Permitted>;

/** A disk image that is sent: it is read where it goes, and compared with what was signed before it is used. */
const isFile = ({ routeOptions, headers }: FastifyRequest) =>
  routeOptions.config.watchesItsBody === true && headers['content-type']?.startsWith(OCTETS) === true;

const logsHandler =
  (
    routes: LogSources,
    signedOf: (request: FastifyRequest) => SignedRequest,
  ): MachineHandlers['readMachineLogs'] =>
  async ({ params: { ref }, query, request }) => {
    const source = await openLog(routes, signedOf(request), ref);
    return (await source.read(query.limit ?? LOG_LINES_DEFAULT)).map((line) => logLineView(source, line));
  };

const powerHandlers = (permit: Permit): Pick<MachineHandlers, 'stopMachine' | 'rebootMachine'> => ({
  async stopMachine({ params: { ref }, request }) {
    const { worker } = await permit(request, ref);
    await worker.runTask(async (instance) => {
      await instance.stop();
      await instance.update({ isPoweredOff: true, isOwnerStopped: true });
    });
    return { status: 'stopped', vm_hash: ref };
  },
  async rebootMachine({ params: { ref }, request }) {
    const { worker } = await permit(request, ref);
    await worker.runTask(async (instance) => {
      await instance.stop();
      await instance.update({ isPoweredOff: false, isOwnerStopped: false, failure: null });
    });
    return { status: 'rebooting', vm_hash: ref };
  },
});

const expireHandler =
  ({ instances, now }: MachineRoutes, permit: Permit): MachineHandlers['expireMachine'] =>
  async ({ params: { ref }, body: { timeout }, request }) => {
    const { worker } = await permit(request, ref);
    const atMs = now() + timeout * 1000;
    await instances.expiries.set(worker, atMs);
    return { status: 'expiring', vm_hash: ref, expires: iso(atMs) };
  };

const reserveHandler =
  (
    { instances, access }: MachineRoutes,
    signedOf: (request: FastifyRequest) => SignedRequest,
  ): MachineHandlers['reserveResources'] =>
  async ({ body, request }) => {
    const operation = await access.identify(signedOf(request));
    const { cpu, memory, disk, image } = convertNetworkContent('INSTANCE', NO_HASH, body)
      .content as InstanceContent;
    checkImage(image);
    await access.note(operation, operation.address);
    const need = { cpu, memoryMib: memory, diskGib: disk };
    const until = await instances.reserve(operation.address, need);
    if (typeof until === 'number') return { status: 'reserved', expires: iso(until) };
    const { code, message } = until;
    return answer(400, { status: 'error', error: message, code, reason: code });
  };

const diskHandlers = (
  { dataDir, instances, access, backups, now }: MachineRoutes,
  { permit, permitLoosely }: { readonly permit: Permit; readonly permitLoosely: Permit },
  signedOf: (request: FastifyRequest) => SignedRequest,
): Pick<MachineHandlers, 'reinstallMachine' | 'eraseMachine'> => ({
  async reinstallMachine({ params: { ref }, query: { erase_volumes: erases }, request }) {
    const erasesVolumes = ['true', 'True', '1'].includes(erases ?? '');
    // What is erased is gone: nobody who forwards a request adds that to it.
    const { worker } = await (erasesVolumes ? permit : permitLoosely)(request, ref);
    await worker.runTask((instance) => reinstall(instance, dataDir, now(), erasesVolumes));
    return { status: 'reinstalling', vm_hash: ref };
  },
  async eraseMachine({ params: { ref }, request }) {
    const operation = await access.identify(signedOf(request));
    const { address: sender } = operation;
    const worker = instances.find(ref);
    if (worker && worker.record.wanted.owner === sender)
      throw new AppError('INSTANCE_BUSY', 'the instance is in use; delete it first, or reinstall it');
    const isOwn = (await listReleased(dataDir)).some((one) => one.id === ref && one.owner === sender);
    if (!isOwn) throw new AppError('INSTANCE_NOT_FOUND', 'this node has no disk of yours for this instance');
    await access.note(operation, sender);
    if (!instances.find(ref)) await backups.eraseAll(ref);
    return { status: 'erased', vm_hash: ref, disks: await eraseReleased(dataDir, ref, sender) };
  },
});

type RestoreFrom = (disk: string) => Promise<void>;

/** Puts a disk image that is sent in the place of an instance's disk. */
async function restoreUpload(
  { dataDir }: MachineRoutes,
  { worker, operation }: Permitted,
  { ref, body, id }: { readonly ref: string; readonly body: unknown; readonly id: string },
  restoreFrom: RestoreFrom,
): Promise<void> {
  const upload = join(dataDir, `upload-${ref}-${id.replaceAll(/[^A-Za-z0-9]/g, '')}.tmp`);
  try {
    checkBody(operation, await receiveFile(body as never, upload, worker.record.wanted.diskGib * GIB));
    await restoreFrom(upload);
  } finally {
    await rm(upload, { force: true });
  }
}

/** Puts back what the node has: a stored file, a snapshot or a backup. */
async function restoreKept(
  { images, backups }: MachineRoutes,
  { worker }: Permitted,
  { ref, body }: { readonly ref: string; readonly body: unknown },
  restoreFrom: RestoreFrom,
): Promise<void> {
  const { backup_id: id, snapshot, volume_ref: file } = (body ?? {}) as Record<string, unknown>;
  if (typeof file === 'string') {
    if (!isFileImage(file))
      throw new AppError('INVALID_HASH', 'volume_ref must be the hash of a stored file');
    const { directory } = await images.ensure(file, () => {}, worker.record.wanted.owner);
    await restoreFrom(join(directory, IMAGE_FILES.disk));
  } else if (snapshot !== undefined) {
    const name = parseSnapshotName(snapshot);
    await worker.runTask((instance) => revertToSnapshot(instance, name));
  } else {
    await restoreFrom((await backups.find(ref, String(id))).path);
  }
}

function restoreHandler(routes: MachineRoutes, permit: Permit): MachineHandlers['restoreMachine'] {
  const { dataDir, now } = routes;
  /** Instances that are being restored: each takes as much of the disk as its instance may have, or has a file fetched. */
  const restoring = new Set<string>();
  return async ({ params: { ref }, body, request }) => {
    const permitted = await permit(request, ref);
    const { worker } = permitted;
    if (restoring.has(ref))
      throw new AppError('INSTANCE_BUSY', 'the instance is being restored; try again later');
    restoring.add(ref);
    try {
      const restoreFrom: RestoreFrom = (disk) =>
        worker.runTask((instance) => restoreDisk(instance, disk, dataDir, now()));
      const asked = { ref, body, id: request.id };
      await (isFile(request) ? restoreUpload : restoreKept)(routes, permitted, asked, restoreFrom);
    } finally {
      restoring.delete(ref);
    }
    worker.wake();
    return { status: 'restored', vm_hash: ref };
  };
}

const snapshotHandlers = (
  permit: Permit,
): Pick<MachineHandlers, 'listSnapshots' | 'createSnapshot' | 'deleteSnapshot'> => ({
  async listSnapshots({ params: { ref }, request }) {
    const { worker } = await permit(request, ref);
    const list = await worker.runTask(async ({ directory, record }) =>
      record.base === null ? [] : listSnapshots(directory),
    );
    return { snapshots: list.map(snapshotView) };
  },
  async createSnapshot({ params: { ref }, body, request }) {
    const { worker } = await permit(request, ref);
    const name = parseSnapshotName((body as { name?: unknown } | null)?.name);
    const list = await worker.runTask((instance) => createSnapshot(instance, name));
    return { snapshots: list.map(snapshotView) };
  },
  async deleteSnapshot({ params, request }) {
    const { worker } = await permit(request, params.ref);
    const name = parseSnapshotName(params.name);
    const list = await worker.runTask((instance) => deleteSnapshot(instance, name));
    return { snapshots: list.map(snapshotView) };
  },
});

const backupHandlers = (
  { backups, links, now }: MachineRoutes,
  permit: Permit,
): Pick<MachineHandlers, 'listBackups' | 'startBackup' | 'deleteBackup' | 'readBackup'> => {
  const view = (ref: string, backup: Backup): BackupView => ({
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
  return {
    async listBackups({ params: { ref }, request }) {
      await permit(request, ref);
      return { backups: (await backups.list(ref)).map((one) => view(ref, one)) };
    },
    async startBackup({ params: { ref }, request }) {
      const { worker } = await permit(request, ref);
      const begun = await backups.start(ref, (task) => worker.runTask(task));
      return answer(202, view(ref, begun));
    },
    async deleteBackup({ params: { ref, id }, request }) {
      await permit(request, ref);
      await backups.delete(ref, id);
      return { status: 'deleted', backup_id: id };
    },
    async readBackup({ params: { ref, id }, query: { expires = 0, signature = '' }, reply }) {
      links.check(ref, id, expires, signature, now());
      const { backup, path: file } = await backups.find(ref, id);
      return reply
        .headers({
          'content-type': OCTETS,
          'content-length': String(backup.sizeBytes),
          'content-disposition': `attachment; filename="${ref.slice(0, 12)}-${id}.qcow2"`,
        })
        .send(createReadStream(file));
    },
  };
};
