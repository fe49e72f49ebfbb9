import type { AskedSigner } from '@skerry/client';
import { type MachineAt, openMachine } from './machine.ts';

/** A line of a machine's console. */
export interface LogLine {
  readonly atMs: number;
  readonly text: string;
}

const LINES = 300;

/** The newest lines of a machine's console, oldest first. Throws AppError. */
export async function readMachineLogs(of: MachineAt, signer: AskedSigner | undefined): Promise<LogLine[]> {
  const lines = await (await openMachine(of, signer)).readLogs(LINES);
  return lines.map(({ MESSAGE: text, __REALTIME_TIMESTAMP: micros }) => ({
    atMs: Number(micros) / 1_000,
    text,
  }));
}
