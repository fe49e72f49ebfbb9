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

/** Reads all of a backup and compares every sum. */
export async function checkFile(
  { output }: Pick<Context, 'output'>,
  file: string,
  options: OpenOptions,
): Promise<{ head: BackupHead; end: BackupEnd }> {
  using progress = output.progress();
  const backup = await openFile(file, options);
  let bytes = 0;
  for await (const { sizeBytes } of backup.members) {
    bytes += sizeBytes;
    progress.show(`checking: ${renderBytes(bytes)}`);
  }
  return { head: backup.head, end: backup.end() };
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
  const { head, end } = await checkFile(context, input.path, options);
  const { database } = end;
  context.output.result(
    { ...head, ...end },
    renderFields([
      ...headFields(head),
      ['whole', `${renderFiles(end.members)}, ${renderBytes(end.bytes)}; every SHA-256 is right`],
      ['events', database === null ? undefined : `up to ${database.event_cursor}`],
      [
        'messages',
        database === null ? undefined : `${database.messages.count}, digest ${database.messages.digest}`,
      ],
    ]),
  );
}
