import { type AskedSigner, CoreClient } from '@skerry/client';
import { AppError } from '@skerry/protocol';
import type { LogLineView } from '@skerry/protocol/api/compute/machines';
import { type MachineAt, openMachine } from './machine.ts';

/** A line of a machine's console. */
export interface LogLine {
  readonly atMs: number;
  readonly text: string;
}

const SHOWN_LINES = 300;
/** As many as a node gives at once. */
const KEPT_LINES = 10_000;

export interface LogsOf extends MachineAt {
  /** Whether all that the node keeps is wanted, and not the newest lines alone. */
  readonly isWhole: boolean;
}

/** The newest lines of a machine's console, oldest first. Throws AppError. */
export async function readMachineLogs(
  { isWhole, ...of }: LogsOf,
  signer: AskedSigner | undefined,
): Promise<LogLine[]> {
  const lines = await (await openMachine(of, signer)).readLogs(isWhole ? KEPT_LINES : SHOWN_LINES);
  return lines.map(lineOf);
}

/** What the node itself says of a program is set apart. */
const lineOf = ({ MESSAGE: text, __REALTIME_TIMESTAMP: micros, file }: LogLineView): LogLine => ({
  atMs: Number(micros) / 1_000,
  text: file === 'system' ? `-- ${text}` : text,
});

/** Nodes that a core node tries for one call. */
const NODES_ASKED_MAX = 3;

export interface ProgramLogsOf {
  readonly coreUrl: string;
  readonly hash: string;
  /** Whether the nodes are asked, too, that come after the first one that ran it. */
  readonly isOfAll: boolean;
}

/** What a program wrote on one node. */
export interface ProgramLog {
  readonly nodeAddress: string;
  readonly url: string;
  readonly lines: readonly LogLine[];
}

/**
 * What a program wrote, by node: of the first that ran it, or of all that calls go to. Nodes are asked one after the other,
 * since its owner signs a pass for each. Throws AppError.
 */
export async function readProgramLogs(
  { coreUrl, hash, isOfAll }: ProgramLogsOf,
  signer: AskedSigner | undefined,
): Promise<ProgramLog[]> {
  const runners = await new CoreClient({ url: coreUrl }).listProgramRunners(hash);
  const logs: ProgramLog[] = [];
  for (const { node_address: nodeAddress, url } of runners.slice(0, NODES_ASKED_MAX)) {
    try {
      const node = await openMachine({ coreUrl, instanceId: hash, nodeAddress }, signer);
      logs.push({ nodeAddress, url, lines: (await node.readLogs(SHOWN_LINES)).map(lineOf) });
      if (!isOfAll) break;
    } catch (error) {
      // It has not run it since it started.
      if (!(error instanceof AppError && error.code === 'INSTANCE_NOT_FOUND')) throw error;
    }
  }
  return logs;
}
