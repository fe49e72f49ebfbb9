import { setTimeout as delay } from 'node:timers/promises';
import { findNode, MachineClient } from '@skerry/client';
import { AppError, type InstanceView } from '@skerry/protocol/forms';
import { confirmLoss, type LossOptions } from '../confirm.ts';
import type { Context } from '../context.ts';
import { afterAccepted } from '../messages/accepted.ts';
import { verdictFields } from '../messages/verdict.ts';
import { plainText } from '../output/text.ts';
import { isFullId } from './find.ts';
import { findMeant } from './meant.ts';
import { findRecord, rememberNode } from './records.ts';

export interface InstanceDeleteOptions extends LossOptions {
  readonly erase?: boolean;
  readonly reason?: string;
}

/** A machine has as long to power down; its node keeps its disk in use until then. */
const ERASE_TIMEOUT_MS = 180_000;
const POLL_MS = 500;

/** Forgets an instance. Its node powers it down and keeps its disk for some days, or erases it at once. */
export async function deleteInstance(
  context: Context,
  reference: string,
  options: InstanceDeleteOptions,
): Promise<void> {
  const { output, paths } = context;
  const core = await context.openWriter();
  const instance = await findMeant(context, reference);
  const { instance_id: id, name, node_address: node } = instance;
  await confirmLoss(context, options, `Delete ${name} (${id}) and its disk?`);
  if (node) await rememberNode(paths.config, id, node);
  const answer = await core.forget([id], options.reason);
  const ids = { instance_id: id, item_hash: answer.item_hash };
  const hint = `to erase its disk, run "skerry instance erase ${id}"`;
  const erased =
    options.erase && node
      ? await afterAccepted(output, { what: `${plainText(name)} was deleted`, ids, hint }, () =>
          eraseAt(context, id, node),
        )
      : undefined;
  output.result({ ...ids, ...verdictFields(answer), ...(erased ?? {}) }, `deleted ${name}`);
  if (!erased && node)
    output.note(`its disk is kept for some days; to erase it now, run "skerry instance erase ${id}"`);
}

export async function eraseInstance(
  context: Context,
  reference: string,
  options: LossOptions,
): Promise<void> {
  context.tellNetwork();
  const { id, node } = await findErasable(context, reference);
  await confirmLoss(context, options, `Erase the disk of ${id} for good?`);
  const erased = await eraseAt(context, id, node);
  context.output.result(erased, `erased ${id}`);
}

/** An instance that was deleted here is known by its record; anything else the core node knows, and the compute node decides. */
async function findErasable(context: Context, reference: string): Promise<{ id: string; node: string }> {
  const record = isFullId(reference)
    ? await findRecord(context.paths.config, reference.toLowerCase())
    : undefined;
  if (record?.node_address) return { id: record.instance_id, node: record.node_address };
  const instance: InstanceView = await findMeant(context, reference);
  if (!instance.node_address)
    throw new AppError('INSTANCE_NOT_READY', `no node was chosen for ${reference}, so there is no disk`);
  return { id: instance.instance_id, node: instance.node_address };
}

/** Asks the node until it has let go of the machine. */
async function eraseAt(
  { reader, output, loadSigner }: Context,
  id: string,
  node: string,
): Promise<Record<string, unknown>> {
  const machine = await MachineClient.open(await findNode(reader, node), id, await loadSigner());
  using progress = output.progress();
  for (const deadlineMs = Date.now() + ERASE_TIMEOUT_MS; ; await delay(POLL_MS)) {
    try {
      return await machine.act('erase');
    } catch (error) {
      const isBusy = error instanceof AppError && error.code === 'INSTANCE_BUSY';
      if (!isBusy || (await isInForce(reader, id)) || Date.now() > deadlineMs) throw error;
      progress.show('waiting for the instance to shut down');
    }
  }
}

const isInForce = async (reader: Context['reader'], id: string) =>
  (await reader.getMessageStatus(id)).status === 'processed';
