import { findNode, MachineClient } from '@skerry/client';
import type { SnapshotView } from '@skerry/protocol/api/compute/machines';
import { AppError, type InstanceView } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { confirmLoss, type LossOptions } from '../confirm.ts';
import type { Context } from '../context.ts';
import { checkReadable, openBlob } from '../files/blob.ts';
import { writeVerified } from '../files/get.ts';
import { tellDrafts } from '../files/write-file.ts';
import { whenEnded } from '../interrupt.ts';
import { plainText, renderBytes } from '../output/text.ts';
import { followLogs, type Line, waitForBackup } from './machine-waits.ts';
import { findMeant } from './meant.ts';
import { renderPhase } from './render.ts';

const LOG_LINES = 10_000;

interface Opened {
  readonly instanceId: string;
  /** As the core node tells it. */
  readonly instance: InstanceView;
  readonly machine: MachineClient;
}

interface Asked {
  readonly isChange?: boolean;
  /** What the owner is asked before something of a disk is lost. */
  readonly loss?: { readonly options: LossOptions; readonly question: (name: string) => string } | undefined;
}

/** The node that runs an instance, spoken to as its owner. Throws INSTANCE_NOT_READY where no node was chosen. */
async function openMachine(
  context: Context,
  reference: string,
  { isChange = false, loss }: Asked = {},
): Promise<Opened> {
  const signer = await context.loadSigner();
  if (isChange) context.tellNetwork();
  const instance = await findMeant(context, reference);
  const { instance_id: instanceId, name, node_address: address } = instance;
  if (loss) await confirmLoss(context, loss.options, loss.question(`${name} (${instanceId})`));
  if (!address)
    throw new AppError('INSTANCE_NOT_READY', `no node has been chosen for ${reference} yet`, {
      details: { hint: `"skerry instance show ${shellWord(reference)}" says why` },
    });
  const node = await findNode(context.reader, address);
  return { instanceId, instance, machine: await MachineClient.open(node, instanceId, signer) };
}

/** By these a node says that it does not look after the instance. */
const ABSENT: readonly string[] = ['INSTANCE_NOT_FOUND', 'INSTANCE_NOT_READY'];

/**
 * What is said of an instance that the network has, and has on this node, where the node does not look after it: how it is, and what its
 * owner can do about that. Any other failure as it is.
 */
export function explainAbsence(
  error: unknown,
  instance: Pick<InstanceView, 'name' | 'phase' | 'reason'>,
  reference: string,
): unknown {
  if (!(error instanceof AppError) || !ABSENT.includes(error.code)) return error;
  const word = shellWord(reference);
  return new AppError(
    'INSTANCE_NOT_READY',
    `${plainText(instance.name)} is ${renderPhase(instance)}; its node says: ${error.message}`,
    {
      cause: error,
      details: {
        hint:
          instance.phase === 'failed'
            ? `it starts as soon as its node can take it; "skerry scheduler explain ${word}" says which nodes have room, and "skerry instance delete ${word}" gives it up`
            : `"skerry instance start ${word} --wait" waits for it, and "skerry instance show ${word}" says how it is`,
      },
    },
  );
}

/** What a node answers of an instance, or why it does not have it. */
const orAbsence = <T>(
  { instance }: Pick<Opened, 'instance'>,
  reference: string,
  asked: Promise<T>,
): Promise<T> =>
  asked.catch((error: unknown) => {
    throw explainAbsence(error, instance, reference);
  });

export async function showLogs(
  context: Context,
  reference: string,
  options: { follow?: boolean },
): Promise<void> {
  const opened = await openMachine(context, reference);
  const { machine, instance } = opened;
  const { output } = context;
  if (options.follow) {
    const print = (line: Line) => output.next(line, textOfLine(line), 'console');
    return orAbsence(opened, reference, followLogs(machine, print));
  }
  const lines = await orAbsence(opened, reference, machine.readLogs(LOG_LINES));
  output.result(lines, lines.map(({ MESSAGE }) => MESSAGE).join('\n'), 'console');
  if (lines.length === 0 && !output.json) output.note(silenceOf(instance));
}

/** Why nothing is in the log of a console: it says nothing before the machine runs. */
export const silenceOf = (instance: Pick<InstanceView, 'name' | 'phase' | 'reason'>): string =>
  `its console has said nothing; ${plainText(instance.name)} is ${renderPhase(instance)}`;

/** What the node itself says is set apart. */
export const textOfLine = ({ MESSAGE, file }: Line) => (file === 'system' ? `-- ${MESSAGE}` : MESSAGE);

export async function actOnMachine(
  context: Context,
  reference: string,
  action: 'reboot' | 'reinstall',
  options: LossOptions,
): Promise<void> {
  const question = (name: string) => `Replace the disk of ${name} with a new one from its image?`;
  const loss = action === 'reinstall' ? { options, question } : undefined;
  const opened = await openMachine(context, reference, { isChange: true, loss });
  const result = await orAbsence(opened, reference, opened.machine.act(action));
  context.output.result(result, `${reference}: ${String(result.status)}`);
}

const renderSnapshots = (list: readonly SnapshotView[]) =>
  list.map(({ name, created_at: time }) => `${time}  ${name}`).join('\n');

export async function workOnSnapshots(
  context: Context,
  reference: string,
  action: 'list' | 'create' | 'delete',
  options: LossOptions,
  name = '',
): Promise<void> {
  const question = (instance: string) => `Delete the snapshot ${name} of ${instance}?`;
  const loss = action === 'delete' ? { options, question } : undefined;
  const opened = await openMachine(context, reference, { isChange: action !== 'list', loss });
  const { machine } = opened;
  const asked =
    action === 'list'
      ? machine.listSnapshots()
      : action === 'create'
        ? machine.createSnapshot(name)
        : machine.deleteSnapshot(name);
  const list = await orAbsence(opened, reference, asked);
  context.output.result(list, renderSnapshots(list));
  if (list.length === 0 && !context.output.json) context.output.note('no snapshots');
}

/** The node's copy of a disk, of which it keeps few: released when it is not needed any more, whatever became of it. */
function copyAt(machine: Pick<MachineClient, 'deleteBackup'>, id: string, { note }: Context['output']) {
  const release = () =>
    machine.deleteBackup(id).then(
      () => undefined,
      (error: Error) =>
        note(`the node keeps its copy for a day, as it could not be deleted: ${error.message}`),
    );
  const watching = whenEnded(release);
  return {
    async [Symbol.asyncDispose]() {
      await release();
      watching[Symbol.dispose]();
    },
  };
}

type BackupMachine = Pick<
  MachineClient,
  'startBackup' | 'listBackups' | 'fetchBackup' | 'deleteBackup' | 'url'
>;

/** Makes a copy at the node, waits for it, fetches and checks it, and removes it there. */
export async function fetchCopy(machine: BackupMachine, output: Context['output'], path: string) {
  using progress = output.progress();
  const { backup_id: id } = await machine.startBackup();
  await using _ = copyAt(machine, id, output);
  progress.show('the node is copying the disk');
  const backup = await waitForBackup(machine, id);
  const sha256 = (backup.checksum ?? '').replace('sha256:', '');
  await writeVerified(await machine.fetchBackup(backup), sha256, path, (bytes) =>
    progress.show(`${renderBytes(bytes)} of ${renderBytes(backup.size ?? 0)}`),
  );
  return { path, size: backup.size, sha256 };
}

export async function backUpInstance(
  context: Context,
  reference: string,
  options: { output: string },
): Promise<void> {
  await tellDrafts(options.output, context.output);
  const opened = await openMachine(context, reference);
  const made = await orAbsence(opened, reference, fetchCopy(opened.machine, context.output, options.output));
  context.output.result(made, `${made.path}: ${renderBytes(made.size ?? 0)}`);
}

export interface RestoreOptions extends LossOptions {
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
  const image = file === undefined ? undefined : await openBlob(file);
  const loss = { options, question: (name: string) => `Replace the disk of ${name}?` };
  const opened = await openMachine(context, reference, { isChange: true, loss });
  const { machine } = opened;
  using progress = context.output.progress();
  progress.show('the node is replacing the disk');
  const asked =
    image !== undefined
      ? sendImage(machine, image)
      : machine.restore(snapshot !== undefined ? { snapshot } : { volume_ref: stored! });
  const result = await orAbsence(opened, reference, asked);
  progress[Symbol.dispose]();
  context.output.result(result, `${reference}: ${String(result.status)}`);
}

/** Throws INVALID_PARAMETERS where the file was changed meanwhile: the node does not tell that from a broken connection. */
const sendImage = (machine: MachineClient, image: Blob) =>
  machine.restoreFile(image).catch(async (error: unknown) => {
    await checkReadable(image);
    throw error;
  });
