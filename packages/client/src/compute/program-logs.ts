import type { LogLineView } from '@skerry/protocol/api/compute/machines';
import type { ProgramRunner } from '@skerry/protocol/api/core/programs';
import { AppError } from '@skerry/protocol/forms';
import type { CoreClient } from '../core-client.ts';
import type { AskedSigner } from '../signer.ts';
import { nodeOfRunner } from './compute-node.ts';
import { MachineClient } from './machine-client.ts';

/** What one compute node said when it was asked for the log of a program. */
export interface ProgramLog {
  readonly runner: ProgramRunner;
  /** Undefined where the node failed. */
  readonly lines: readonly LogLineView[] | undefined;
  readonly failure: AppError | undefined;
}

/** Nodes that are asked: those that calls go to first. */
const NODES_ASKED_MAX = 16;
/** By which a node says that it has not run the program since it started. */
const NOT_RUN = 'INSTANCE_NOT_FOUND';

async function askRunner(
  runner: ProgramRunner,
  hash: string,
  signer: AskedSigner,
  limit: number,
): Promise<ProgramLog[]> {
  try {
    const node = await MachineClient.open(nodeOfRunner(runner), hash, signer);
    return [{ runner, lines: await node.readLogs(limit), failure: undefined }];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.code === NOT_RUN ? [] : [{ runner, lines: undefined, failure: error }];
  }
}

/**
 * What a program wrote, by each node that ran it: a compute node keeps it for itself, until it starts anew. The first 16
 * nodes that calls are sent to are asked; the signer signs a pass for each. Nodes that have not run it are left out.
 *
 * @param limit lines of each node, at most
 * @throws AppError PROGRAM_NOT_FOUND, and what a core node may not be asked for
 */
export async function readProgramLogs(
  core: Pick<CoreClient, 'listProgramRunners'>,
  hash: string,
  signer: AskedSigner,
  limit: number,
): Promise<ProgramLog[]> {
  const runners = (await core.listProgramRunners(hash)).slice(0, NODES_ASKED_MAX);
  return (await Promise.all(runners.map((runner) => askRunner(runner, hash, signer, limit)))).flat();
}
