import { type AskedSigner, findNode, MachineClient } from '@skerry/client';
import { AppError } from '@skerry/protocol';

/** A machine, at the compute node that has it. */
export interface MachineAt {
  readonly coreUrl: string;
  readonly instanceId: string;
  /** Of the compute node. */
  readonly nodeAddress: string;
}

/** A pass is good for an hour: it is signed anew a while before. */
const PASS_MS = 55 * 60_000;
const OPEN_MAX = 20;

interface Opened {
  readonly client: Promise<MachineClient>;
  readonly untilMs: number;
}

/** Owners are asked once for each machine, not once for each question. */
const opened = new Map<string, Opened>();

/** What asks a machine's node in its owner's name. The first time, the owner signs a pass. Throws AppError. */
export function openMachine(
  { coreUrl, instanceId, nodeAddress }: MachineAt,
  signer: AskedSigner | undefined,
): Promise<MachineClient> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'only its owner may ask a machine for this');
  const key = JSON.stringify([coreUrl, instanceId, nodeAddress, signer.address]);
  const known = opened.get(key);
  if (known && known.untilMs > Date.now()) return known.client;
  const client = findNode({ url: coreUrl }, nodeAddress).then((node) =>
    MachineClient.open(node, instanceId, signer),
  );
  if (opened.size >= OPEN_MAX) opened.clear();
  opened.set(key, { client, untilMs: Date.now() + PASS_MS });
  client.catch(() => opened.delete(key));
  return client;
}
