import { openAsBlob } from 'node:fs';
import { findNode, MachineClient } from '@skerry/client';
import type { SnapshotView } from '@skerry/protocol/api/compute/machines';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { writeVerified } from '../files/get.ts';
import { unreadable } from '../files/read-text.ts';
import { checkTarget } from '../files/write-file.ts';
import { renderBytes } from '../output/text.ts';
import { findInstance } from './find.ts';
import { followLogs, type Line, waitForBackup } from './machine-waits.ts';

const LOG_LINES = 10_000;

interface Opened {
  readonly instanceId: string;
  readonly machine: MachineClient;
}

/** The node that runs an instance, spoken to as its owner. Throws INSTANCE_NOT_READY where no node was chosen. */
async function openMachine(context: Context, reference: string, isChange = false): Promise<Opened> {
  const signer = await context.loadSigner();
  if (isChange) context.tellNetwork();
  const { instance_id: instanceId, node_address: address } = await findInstance(context, reference);
  if (!address)
    throw new AppError('INSTANCE_NOT_READY', `no node has been chosen for ${reference} yet`, {
      details: { hint: `"skerry instance show ${reference}" says why` },
    });
  const node = await findNode(context.reader, address);
  return { instanceId, machine: await MachineClient.open(node, instanceId, signer) };
}

export async function showLogs(
  context: Context,
  reference: string,
  options: { follow?: boolean },
): Promise<void> {
  const { machine } = await openMachine(context, reference);
  const { output } = context;
  if (options.follow) return followLogs(machine, (line) => output.next(line, textOfLine(line), 'console'));
  const lines = await machine.readLogs(LOG_LINES);
  output.result(lines, lines.map(({ MESSAGE }) => MESSAGE).join('\n'), 'console');
}

/** What the node itself says is set apart. */
export const textOfLine = ({ MESSAGE, file }: Line) => (file === 'system' ? `-- ${MESSAGE}` : MESSAGE);

export async function actOnMachine(
  context: Context,
  reference: string,
  action: 'reboot' | 'reinstall',
): Promise<void> {
  const { machine } = await openMachine(context, reference, true);
  const result = await machine.act(action);
  context.output.result(result, `${reference}: ${String(result.status)}`);
}

const renderSnapshots = (list: readonly SnapshotView[]) =>
  list.map(({ name, created_at: time }) => `${time}  ${name}`).join('\n');

export async function workOnSnapshots(
  context: Context,
  reference: string,
  action: 'list' | 'create' | 'delete',
  name = '',
): Promise<void> {
  const { machine } = await openMachine(context, reference, action !== 'list');
  const list = await (action === 'list'
    ? machine.listSnapshots()
    : action === 'create'
      ? machine.createSnapshot(name)
      : machine.deleteSnapshot(name));
  context.output.result(list, renderSnapshots(list));
  if (list.length === 0 && !context.output.json) context.output.note('no snapshots');
}

/** Makes a backup at the node, waits for it, fetches and checks it, and removes it there. */
export async function backUpInstance(
  context: Context,
  reference: string,
  options: { output: string },
): Promise<void> {
  await checkTarget(options.output);
  const { machine } = await openMachine(context, reference);
  using progress = context.output.progress();
  const { backup_id: id } = await machine.startBackup();
  progress.show('the node is copying the disk');
  const backup = await waitForBackup(machine, id);
  const checksum = (backup.checksum ?? '').replace('sha256:', '');
  await writeVerified(await machine.fetchBackup(backup), checksum, options.output, (bytes) =>
    progress.show(`${renderBytes(bytes)} of ${renderBytes(backup.size ?? 0)}`),
  );
  await machine.deleteBackup(id);
  progress[Symbol.dispose]();
  context.output.result(
    { path: options.output, size: backup.size, sha256: checksum },
    `${options.output}: ${renderBytes(backup.size ?? 0)}`,
  );
}

export interface RestoreOptions {
  readonly snapshot?: string;
  readonly file?: string;
  readonly stored?: string;
}

export async function restoreInstance(
  context: Context,
  reference: string,
  options: RestoreOptions,
): Promise<void> {
  const { snapshot, file, stored } = options;
  if ([snapshot, file, stored].filter((one) => one !== undefined).length !== 1)
    throw new AppError('INVALID_PARAMETERS', 'no source to restore from', {
      details: { hint: 'use one of --snapshot, --file and --stored' },
    });
  const { machine } = await openMachine(context, reference, true);
  using progress = context.output.progress();
  progress.show('the node is replacing the disk');
  const result =
    file !== undefined
      ? await machine.restoreFile(await openImage(file))
      : await machine.restore(snapshot !== undefined ? { snapshot } : { volume_ref: stored! });
  progress[Symbol.dispose]();
  context.output.result(result, `${reference}: ${String(result.status)}`);
}

async function openImage(path: string): Promise<Blob> {
  return openAsBlob(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
}
