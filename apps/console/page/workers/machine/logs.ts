import type { AskedSigner } from '@skerry/client';
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
  return lines.map(({ MESSAGE: text, __REALTIME_TIMESTAMP: micros }) => ({
    atMs: Number(micros) / 1_000,
    text,
  }));
}
