import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chown, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  asidePathOf,
  isMissing,
  type Logger,
  makeDirectory,
  readJsonOrSetAside,
  readTextIfAny,
  renameDurably,
  Slots,
  syncFile,
  writeFileAtomically,
} from '@skerry/kit';
import { AppError, fieldsOf, isItemHash64, type Reason } from '@skerry/protocol';
import { isDiskFull } from '../../host/disk-full.ts';
import { runImageTool, type ToolFiles } from '../../host/image-tool.ts';
import { promiseRoom } from '../../host/room.ts';
import { machineUid } from '../../host/users.ts';
import { copyDiskLive } from '../../vm/disk-jobs.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { reasonOf } from '../worker/retry.ts';
import { readUnwritten } from './promised.ts';
import { backingOf, needDisk } from './snapshots.ts';

/** A copy of an instance's disk, in one file that needs no other. */
export interface Backup {
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** How long it was there while the node ran: a clock that is ahead makes no backup old. */
  readonly keptMs?: number;
  /** Of the file, once it is done. */
  readonly sizeBytes: number | null;
  readonly sha256: string | null;
  readonly reason: Reason | null;
}

export interface BackupsOptions {
  readonly dataDir: string;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly log: Logger;
}

const BACKUPS_MAX = 3;
const BACKUP_LIFE_MS = 24 * 3_600_000;
const COPY_TIMEOUT_MS = 60 * 60_000;
/** Of a machine that runs, and goes on meanwhile: as long as `skerry instance backup` waits. */
const LIVE_COPY_TIMEOUT_MS = 6 * COPY_TIMEOUT_MS;
/** What is left of the server's disk when a backup is done, beside the reserve that all leave (host/room.ts). */
const LEFT_BYTES = 1024 ** 3;
const ID_DIGITS = 16;
const ID = new RegExp(`^[0-9a-f]{${ID_DIGITS}}$`);
const SUFFIX = { note: '.json', file: '.qcow2', draft: '.tmp' } as const;
/** What may be left of a copy that ended with its process, beside its note. */
const COPY = new RegExp(`^[0-9a-f]{${ID_DIGITS}}\\.(qcow2|tmp|json\\.[0-9a-f]{12}\\.draft)$`);
const STATES = ['running', 'done', 'failed'];

/** Of the backup of an id. Throws where it is none. */
function parseNote(id: string, value: unknown): Backup {
  const { id: noted, state, createdAtMs, expiresAtMs } = fieldsOf(value);
  if (noted !== id || !STATES.includes(String(state)) || ![createdAtMs, expiresAtMs].every(Number.isFinite))
    throw new Error(`it is not the note of the backup ${id}`);
  return value as Backup;
}

/** Backups of all instances of a node: files of their own, which last for a day and are there to be fetched. */
export class Backups {
  readonly #options: BackupsOptions;
  /** What is counted, or found, stays so until it is written down. */
  readonly #turn = new Slots(1);
  /** Those that an earlier process left unfinished, whatever their notes say. */
  readonly #cutOff = new Set<string>();

  private constructor(options: BackupsOptions) {
    this.#options = options;
  }

  /** Backups that a process which ended left unfinished failed: this is known before any other can be begun. */
  static async open(options: BackupsOptions): Promise<Backups> {
    const backups = new Backups(options);
    for (const instanceId of await backups.#instances()) {
      // Sets notes aside that cannot be read.
      await backups.list(instanceId);
      await backups.#eraseUnnoted(instanceId);
    }
    for await (const [instanceId, backup] of backups.#all()) {
      if (backup.state !== 'running') continue;
      backups.#cutOff.add(backup.id);
      await backups.#erase(instanceId, backup.id);
      await backups.#note(instanceId, asCutOff(backup)).catch((error: unknown) => {
        // This process knows, and the next one finds out again.
        if (!isDiskFull(error)) throw error;
      });
    }
    return backups;
  }

  async *#all(): AsyncGenerator<[instanceId: string, Backup]> {
    for (const instanceId of await this.#instances())
      for (const backup of await this.list(instanceId)) yield [instanceId, backup];
  }

  /** Whatever else an operator put there is not the node's. */
  async #instances(): Promise<string[]> {
    const names = await readdir(join(this.#options.dataDir, 'backups')).catch(() => []);
    return names.filter(isItemHash64);
  }

  /**
   * What no note tells of: the process ended while what its owner had deleted was copied, or between a note and its file. The file of a
   * note that was set aside is a whole backup, since it gets its name when it is; its operator decides.
   */
  async #eraseUnnoted(instanceId: string): Promise<void> {
    const directory = this.#directory(instanceId);
    const names = await readdir(directory);
    const isKept = (name: string) => {
      const note = `${name.slice(0, ID_DIGITS)}${SUFFIX.note}`;
      return names.includes(note) || (name.endsWith(SUFFIX.file) && names.includes(asidePathOf(note)));
    };
    const unnoted = names.filter((name) => COPY.test(name) && !isKept(name));
    if (unnoted.length === 0) return;
    for (const name of unnoted) await rm(join(directory, name), { force: true });
    this.#options.log.info({ instance: instanceId, files: unnoted }, 'removed what no backup needs');
  }

  #directory(instanceId: string): string {
    return join(this.#options.dataDir, 'backups', instanceId);
  }

  #path(instanceId: string, backupId: string, suffix: keyof typeof SUFFIX): string {
    return join(this.#directory(instanceId), `${backupId}${SUFFIX[suffix]}`);
  }

  async list(instanceId: string): Promise<Backup[]> {
    const names = await readdir(this.#directory(instanceId)).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    const found: Backup[] = [];
    for (const name of names) {
      if (!name.endsWith(SUFFIX.note)) continue;
      const backup = await readJsonOrSetAside(join(this.#directory(instanceId), name), {
        parse: (value) => parseNote(name.slice(0, -SUFFIX.note.length), value),
        instead: 'its backup is not listed, and stays beside it until you remove it',
        log: this.#options.log,
      });
      // It may have been deleted since.
      if (backup) found.push(this.#cutOff.has(backup.id) ? asCutOff(backup) : backup);
    }
    return found.sort((one, other) => one.createdAtMs - other.createdAtMs);
  }

  /** Whether its owner has not deleted it: also where its note could not be read and was set aside. */
  async #isNoted(instanceId: string, backupId: string): Promise<boolean> {
    if ((await this.list(instanceId)).some(({ id }) => id === backupId)) return true;
    // What an owner names becomes a path only where it has the form of an id.
    if (!ID.test(backupId)) return false;
    return (await readTextIfAny(asidePathOf(this.#path(instanceId, backupId, 'note')))) !== undefined;
  }

  /** The file of a backup that is done. Throws BACKUP_NOT_FOUND. */
  async find(instanceId: string, backupId: string): Promise<{ backup: Backup; path: string }> {
    const backup = ID.test(backupId)
      ? (await this.list(instanceId)).find((one) => one.id === backupId)
      : undefined;
    if (backup?.state !== 'done')
      throw new AppError(
        'BACKUP_NOT_FOUND',
        `the instance has no finished backup ${backupId.slice(0, ID_DIGITS)}`,
      );
    return { backup, path: this.#path(instanceId, backupId, 'file') };
  }

  /** Begins a backup. `copy` gets the task that makes it; the backup's state tells what came of it. Throws TOO_MANY_COPIES. */
  async start(
    instanceId: string,
    copy: (task: (instance: IdleInstance) => Promise<void>) => Promise<void>,
  ): Promise<Backup> {
    const begun = await this.#turn.run(() => this.#begin(instanceId));
    // What cannot be noted is said to be cut off by the next process.
    this.#finish(instanceId, begun, copy).catch(() => {});
    return begun;
  }

  async #begin(instanceId: string): Promise<Backup> {
    const listed = await this.list(instanceId);
    // Of one that failed nothing is there but its note, which says why.
    const failed = listed.find(({ state }) => state === 'failed');
    if (listed.length >= BACKUPS_MAX && failed)
      await rm(this.#path(instanceId, failed.id, 'note'), { force: true });
    else if (listed.length >= BACKUPS_MAX)
      throw new AppError(
        'TOO_MANY_COPIES',
        `an instance can have ${BACKUPS_MAX} backups on a node; delete one`,
      );
    const createdAtMs = this.#options.now();
    const begun: Backup = {
      id: randomBytes(ID_DIGITS / 2).toString('hex'),
      state: 'running',
      createdAtMs,
      expiresAtMs: createdAtMs + BACKUP_LIFE_MS,
      sizeBytes: null,
      sha256: null,
      reason: null,
    };
    await makeDirectory(this.#directory(instanceId));
    await this.#note(instanceId, begun);
    return begun;
  }

  async #finish(
    instanceId: string,
    begun: Backup,
    copy: (task: (instance: IdleInstance) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const draft = this.#path(instanceId, begun.id, 'draft');
    const file = this.#path(instanceId, begun.id, 'file');
    let ended: Partial<Backup>;
    try {
      await copy(async (instance) => {
        if (await this.#isNoted(instanceId, begun.id)) await this.#copyDisk(instance, draft, begun.id);
      });
      await chown(draft, process.geteuid?.() ?? 0, process.getegid?.() ?? 0);
      await syncFile(draft);
      await renameDurably(draft, file);
      ended = { state: 'done', sha256: await digestOf(file), sizeBytes: (await stat(file)).size };
    } catch (error) {
      ended = { state: 'failed', reason: reasonOf(error) };
    }
    if (ended.state === 'failed') await this.#erase(instanceId, begun.id);
    // Its owner may have deleted it meanwhile, and had others made in its place.
    const isKept = await this.#renote(instanceId, { ...begun, ...ended });
    if (!isKept) await this.#erase(instanceId, begun.id);
  }

  /** What was copied, whole or not. */
  async #erase(instanceId: string, backupId: string): Promise<void> {
    for (const kind of ['draft', 'file'] as const)
      await rm(this.#path(instanceId, backupId, kind), { force: true });
  }

  async #copyDisk(instance: IdleInstance, target: string, id: string): Promise<void> {
    needDisk(instance);
    const disk = join(instance.directory, MACHINE_FILES.disk);
    const uid = machineUid(instance.record.id);
    const reads = [disk, ...backingOf(instance)];
    const { required, virtualBytes } = await measure(disk, { uid, reads });
    // QEMU sees its own directory and nothing else: the copy is made there, and moved.
    const name = `backup-${id}.qcow2.tmp`;
    const copied = join(instance.directory, name);
    const what = 'a backup, with 1 GiB beside it,';
    const path = instance.vm ? copied : target;
    // It takes nothing of what instances were promised.
    const readBeside = () => readUnwritten(this.#options.dataDir);
    using _room = await promiseRoom(path, required + LEFT_BYTES, what, readBeside);
    if (!instance.vm) {
      const args = ['convert', '-f', 'qcow2', '-O', 'qcow2', disk, target];
      const limits = { timeoutMs: COPY_TIMEOUT_MS, signal: this.#options.signal };
      await runImageTool(['qemu-img', ...args], { uid, reads, writes: [target] }, limits);
      return;
    }
    try {
      const create = ['qemu-img', 'create', '-q', '-f', 'qcow2', copied, `${virtualBytes}`];
      await runImageTool(create, { uid, writes: [copied] });
      const limits = { limitMs: LIVE_COPY_TIMEOUT_MS, signal: this.#options.signal };
      await copyDiskLive(instance.vm, name, `backup-${id}`, limits);
      await renameDurably(copied, target);
    } finally {
      await rm(copied, { force: true });
    }
  }

  /** Throws BACKUP_NOT_FOUND. */
  delete(instanceId: string, backupId: string): Promise<void> {
    return this.#turn.run(async () => {
      if (!(await this.#isNoted(instanceId, backupId)))
        throw new AppError('BACKUP_NOT_FOUND', 'the instance has no such backup');
      const note = this.#path(instanceId, backupId, 'note');
      for (const path of [note, asidePathOf(note), this.#path(instanceId, backupId, 'file')])
        await rm(path, { force: true });
    });
  }

  /** Erases all of an instance, whose owner wants nothing of it to be left. */
  eraseAll(instanceId: string): Promise<void> {
    return this.#turn.run(() => rm(this.#directory(instanceId), { recursive: true, force: true }));
  }

  /**
   * Those whose time is over are erased, by the clock and by how long the node ran with them. One that a clock which was ahead gave more
   * than a whole time has that from now on.
   * @param elapsedMs how long the node ran since the last time
   */
  async sweep(elapsedMs: number): Promise<void> {
    const nowMs = this.#options.now();
    for await (const [instanceId, backup] of this.#all()) {
      if (backup.state === 'running') continue;
      const keptMs = (backup.keptMs ?? 0) + elapsedMs;
      const expiresAtMs = Math.min(backup.expiresAtMs, nowMs + BACKUP_LIFE_MS);
      if (nowMs > expiresAtMs && keptMs >= BACKUP_LIFE_MS) await this.delete(instanceId, backup.id);
      else
        await this.#renote(instanceId, { ...backup, expiresAtMs, keptMs }).catch((error: unknown) => {
          // It is kept for longer then.
          if (!isDiskFull(error)) throw error;
        });
    }
  }

  /** Unless it was deleted meanwhile. @returns whether it was not */
  #renote(instanceId: string, backup: Backup): Promise<boolean> {
    return this.#turn.run(async () => {
      const isKept = await this.#isNoted(instanceId, backup.id);
      if (isKept) await this.#note(instanceId, backup);
      return isKept;
    });
  }

  #note(instanceId: string, backup: Backup): Promise<void> {
    const text = `${JSON.stringify(backup)}\n`;
    return writeFileAtomically(this.#path(instanceId, backup.id, 'note'), text, 0o600);
  }
}

const CUT_OFF: Reason = { code: 'INTERNAL', message: 'the compute node was restarted during the backup' };

const asCutOff = (backup: Backup): Backup => ({ ...backup, state: 'failed', reason: CUT_OFF });

/** What a copy of a disk takes, and how large the disk is, in bytes. */
async function measure(disk: string, files: ToolFiles): Promise<{ required: number; virtualBytes: number }> {
  const share = ['--output=json', '--force-share', '-f', 'qcow2'];
  const ask = async (...args: string[]): Promise<unknown> =>
    JSON.parse(await runImageTool(['qemu-img', ...args], files));
  const { required } = (await ask('measure', ...share, '-O', 'qcow2', disk)) as { required: number };
  const info = (await ask('info', ...share, disk)) as { 'virtual-size': number };
  return { required, virtualBytes: info['virtual-size'] };
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256');
  for await (const chunk of createReadStream(path)) digest.update(chunk as Uint8Array);
  return digest.digest('hex');
}
