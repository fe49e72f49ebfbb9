import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createSigner } from '@skerry/client/signer';
import {
  type BackupEnd,
  type BackupHead,
  type BackupMember,
  type DatabaseFacts,
  FORMAT,
  type Logger,
  loadKeyFile,
  refuseHalfRestored,
  renameDurably,
  syncFile,
  systemCodeOf,
  VERSION,
  writeBackup,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { cannotWrite } from '../files/write-file.ts';
import { removeWhenEnded } from '../interrupt.ts';
import { readLocalPlace } from '../networks/local.ts';
import { createNoteLog } from '../output/log.ts';
import { leaveToWriter, whenLost } from '../output/lost.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes, renderFields, renderFiles } from '../output/text.ts';
import { type Draft, openDraft } from './draft.ts';
import { hasDatabase, listMembers } from './members.ts';
import { readPassphrase } from './passphrase.ts';
import { findNode, hasFiles, type Node, type RoleOptions } from './role.ts';
import { sparing } from './spare.ts';

export interface BackupOptions extends RoleOptions {
  readonly encryptTo?: string;
  readonly withoutFiles?: boolean;
}

const STDOUT = '-';

async function addressOf({ keeping, directory }: Node): Promise<string | null> {
  if (keeping.identity === undefined) return null;
  const path = join(directory, keeping.identity);
  return existsSync(path) ? createSigner(await loadKeyFile(path)).address : null;
}

/** What others know the node by, where it has such a key and it is not there. */
function lostKeyOf({ keeping, directory, role }: Node): string | undefined {
  if (keeping.identity === undefined || existsSync(join(directory, keeping.identity))) return undefined;
  return `the key: ${directory} has no ${keeping.identity}; is this where the ${role} keeps its data?`;
}

/** A daemon that is given its settings by its unit or by whoever starts it has them where this command does not look. */
const unknownSettings = ({ unset, role }: Node): string[] =>
  unset === undefined
    ? []
    : [
        `settings: neither ${unset} nor the environment has any; what the ${role} is given elsewhere, such as by its unit, has to be saved beside this`,
      ];

async function headOf(node: Node, withFiles: boolean): Promise<BackupHead> {
  const { role, keeping, config, directory } = node;
  const kinds = new Set(keeping.entries.map(({ kind }) => kind));
  kinds.delete('passing');
  const missing = !(await hasDatabase(node)) && kinds.delete('database') && config.databaseUrl === undefined;
  const lostKey = lostKeyOf(node);
  const leftOut = [
    ...(lostKey === undefined ? [] : [lostKey]),
    ...unknownSettings(node),
    ...(missing
      ? [`the database: there is none in ${directory}; is this where the node keeps its data?`]
      : []),
    ...(!withFiles && kinds.delete('files') ? ['files: they were left out (--without-files)'] : []),
  ];
  return {
    format: FORMAT,
    role,
    version: VERSION,
    made_at: new Date().toISOString(),
    address: await addressOf(node),
    data_dir: directory,
    holds: [...kinds],
    absent: [...(keeping.absent?.(config) ?? []), ...leftOut],
  };
}

interface Made {
  readonly head: BackupHead;
  readonly members: number;
  readonly bytes: number;
  readonly database: BackupEnd['database'];
}

/** Where the bytes of a backup go. */
type Send = (bytes: AsyncIterable<Uint8Array>) => Promise<void>;

async function writeTo(
  send: Send,
  node: Node,
  options: {
    readonly withFiles: boolean;
    readonly passphrase: string | undefined;
    readonly progress: Progress;
    readonly log: Logger;
    /** The file that they go to, where it is one. */
    readonly path?: string | undefined;
  },
): Promise<Made> {
  const { withFiles, passphrase, progress, log, path } = options;
  const head = await headOf(node, withFiles);
  const state: { database: DatabaseFacts | null; members: number; bytes: number } = {
    ...{ database: null, members: 0, bytes: 0 },
  };
  const members = listMembers(node, {
    ...{ withFiles, log },
    onDatabase: (facts) => (state.database = facts),
  });
  const onMember = ({ kind, sizeBytes }: Pick<BackupMember, 'kind' | 'sizeBytes'>) => {
    if (kind === 'file') state.members++;
    state.bytes += sizeBytes;
    progress.show(`saving: ${renderFiles(state.members)}, ${renderBytes(state.bytes)}`);
  };
  const bytes = writeBackup({ head, members, database: () => state.database, passphrase, onMember });
  await send(path === undefined ? bytes : sparing(bytes, path, node));
  return { head, ...state };
}

/** What the system said of a file that is written, with what helps. */
function explain(error: unknown, path: string): unknown {
  const code = systemCodeOf(error);
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const message = `${dirname(path)} has no room for the backup: name a file on another disk`;
  return new AppError('STORAGE_FULL', message, { cause: error });
}

async function makeDraft(path: string): Promise<Draft> {
  try {
    return await openDraft(path);
  } catch (error) {
    if (error instanceof AppError) throw error;
    const why = explain(error, path);
    throw why === error ? cannotWrite(path, error) : why;
  }
}

/** Makes the file as a whole or not at all, for its owner's eyes only. Throws FILE_EXISTS, INVALID_PARAMETERS, STORAGE_FULL. */
async function writeFile(path: string, write: (send: Send) => Promise<Made>): Promise<Made> {
  const refuseExisting = () => {
    if (existsSync(path))
      throw new AppError('FILE_EXISTS', `${path} is there already: name another file, or remove it`);
  };
  refuseExisting();
  const draft = `${path}.part`;
  using file = await makeDraft(draft);
  using _ = removeWhenEnded(draft);
  try {
    const made = await write((bytes) => file.write(bytes));
    await syncFile(draft);
    refuseExisting();
    await renameDurably(draft, path);
    return made;
  } catch (error) {
    await rm(draft, { force: true });
    throw explain(error, draft);
  }
}

/** Throws INTERNAL where its reader has gone: what it got is no backup. */
async function writeToStdout(
  stdout: NodeJS.WriteStream,
  write: (send: Send) => Promise<Made>,
): Promise<Made> {
  using _ = whenLost(stdout, leaveToWriter);
  try {
    return await write((bytes) => pipeline(bytes, stdout, { end: stdout !== process.stdout }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    throw new AppError('INTERNAL', 'whoever reads the backup has gone before its end: it is incomplete', {
      cause: error,
    });
  }
}

function renderMade(path: string, sizeBytes: number, { head, members, bytes, database }: Made): string {
  return renderFields([
    ['backup', `${path}, ${renderBytes(sizeBytes)}`],
    ['of', `${head.role}${head.address === null ? '' : ` ${head.address}`}`],
    ['holds', `${head.holds.join(', ')}; ${renderFiles(members)}, ${renderBytes(bytes)}`],
    ['events', database === null ? undefined : `up to ${database.event_cursor}`],
    ...head.absent.map((sentence) => ['not in it', sentence] as const),
  ]);
}

/** A daemon of "skerry up" has its data elsewhere. */
async function nothingThere({ paths }: Context, { role, directory }: Node): Promise<AppError> {
  const devnet = join((await readLocalPlace(paths.data)).dataDir, role);
  const where = (await hasFiles(devnet)) ? ` ${shellWord(devnet)} for that of "skerry up"` : '';
  return new AppError(
    'INVALID_PARAMETERS',
    `${directory} is empty or not there: name it with --data-dir${where}`,
  );
}

/** Saves all that a node must not lose in one file, also while it runs. */
export async function backup(context: Context, file: string, options: BackupOptions): Promise<void> {
  const { output } = context;
  const node = await findNode(context, options);
  if (!(await hasFiles(node.directory))) throw await nothingThere(context, node);
  refuseHalfRestored(node.directory);
  const passphrase = options.encryptTo === undefined ? undefined : await readPassphrase(options.encryptTo);
  using progress = output.progress();
  const log = createNoteLog('backup', 'warn', output);
  const write = (send: Send, to?: string) =>
    writeTo(send, node, { withFiles: options.withoutFiles !== true, passphrase, progress, log, path: to });
  if (file === STDOUT) {
    const { head } = await writeToStdout(output.stdout, write);
    for (const sentence of head.absent) output.note(`not in it: ${sentence}`);
    return;
  }
  const path = resolve(file);
  const made = await writeFile(path, (send) => write(send, path));
  const { size } = await stat(path);
  output.result({ file: path, size_bytes: size, ...made }, renderMade(path, size, made));
}
