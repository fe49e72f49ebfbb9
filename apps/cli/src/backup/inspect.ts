import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type BackupEnd, type BackupHead, type OpenBackup, openBackup } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { unreadable } from '../files/read-text.ts';
import { renderBytes, renderFields, renderFiles } from '../output/text.ts';
import { openInput } from './input.ts';
import { readPassphrase } from './passphrase.ts';

export interface OpenOptions {
  readonly passphraseFile?: string;
}

/** Opens a backup. Throws INVALID_PARAMETERS, PASSPHRASE_WRONG, BACKUP_DAMAGED, BACKUP_UNFIT. */
export async function openFile(file: string, { passphraseFile }: OpenOptions): Promise<OpenBackup> {
  const source = createReadStream(file, { highWaterMark: 1024 * 1024 });
  await once(source, 'open').catch((error: unknown) => {
    throw unreadable(file, error);
  });
  return openBackup(source, () => {
    if (passphraseFile === undefined)
      throw new AppError(
        'INVALID_PARAMETERS',
        'the backup is encrypted: name the file of its passphrase with --passphrase-file',
      );
    return readPassphrase(passphraseFile);
  });
}

/** Reads all of a backup and compares every sum. @returns what it says, and how much of the node is in it: its end counts its head, too */
export async function checkFile(
  { output }: Pick<Context, 'output'>,
  file: string,
  options: OpenOptions,
): Promise<{ head: BackupHead; end: BackupEnd; held: Pick<BackupEnd, 'members' | 'bytes'> }> {
  using progress = output.progress();
  const backup = await openFile(file, options);
  const held = { members: 0, bytes: 0 };
  for await (const { kind, sizeBytes } of backup.members) {
    if (kind === 'file') held.members++;
    held.bytes += sizeBytes;
    progress.show(`checking: ${renderBytes(held.bytes)}`);
  }
  return { head: backup.head, end: backup.end(), held };
}

const headFields = (head: BackupHead): (readonly [string, string | undefined])[] => [
  ['role', head.role],
  ['node', head.address ?? undefined],
  ['made', `${head.made_at} by release ${head.version}`],
  ['from', head.data_dir],
  ['holds', head.holds.join(', ')],
  ...head.absent.map((sentence) => ['not in it', sentence] as const),
];

/** What a backup says of itself, without reading all of it. */
export async function show(context: Context, file: string, options: OpenOptions): Promise<void> {
  await using input = await openInput(context, file);
  const { head, members } = await openFile(input.path, options);
  await members[Symbol.asyncIterator]().return?.();
  context.output.result(head, renderFields(headFields(head)));
}

export async function verify(context: Context, file: string, options: OpenOptions): Promise<void> {
  await using input = await openInput(context, file);
  const { head, end, held } = await checkFile(context, input.path, options);
  const { database } = end;
  context.output.result(
    { ...head, ...end, ...held },
    renderFields([
      ...headFields(head),
      ['whole', `${renderFiles(held.members)}, ${renderBytes(held.bytes)}; every SHA-256 is right`],
      ['events', database === null ? undefined : `up to ${database.event_cursor}`],
      [
        'messages',
        database === null ? undefined : `${database.messages.count}, digest ${database.messages.digest}`,
      ],
    ]),
  );
}
