import { type AskedSigner, findNodeUrl, MachineClient } from '@skerry/client';
import { AppError } from '@skerry/protocol';

/** A line of a machine's console. */
export interface LogLine {
  readonly atMs: number;
  readonly text: string;
}

export interface LogsOf {
  readonly coreUrl: string;
  readonly instanceId: string;
  /** Of the compute node. */
  readonly nodeAddress: string;
}

const LINES = 300;
/** A pass is good for an hour: it is signed anew a while before. */
const PASS_MS = 55 * 60_000;
const OPEN_MAX = 20;

interface Opened {
  readonly client: Promise<MachineClient>;
  readonly untilMs: number;
}

/** Owners are asked once for each machine, not once for each reading. */
const opened = new Map<string, Opened>();

function open({ coreUrl, instanceId, nodeAddress }: LogsOf, signer: AskedSigner): Promise<MachineClient> {
  const key = JSON.stringify([coreUrl, instanceId, nodeAddress, signer.address]);
  const known = opened.get(key);
  if (known && known.untilMs > Date.now()) return known.client;
  const client = findNodeUrl({ url: coreUrl }, nodeAddress).then((url) =>
    MachineClient.open(url, instanceId, signer),
  );
  if (opened.size >= OPEN_MAX) opened.clear();
  opened.set(key, { client, untilMs: Date.now() + PASS_MS });
  client.catch(() => opened.delete(key));
  return client;
}

/** The newest lines of a machine's console, oldest first. Throws AppError. */
export async function readMachineLogs(of: LogsOf, signer: AskedSigner | undefined): Promise<LogLine[]> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'only its owner reads the console of a machine');
  const lines = await (await open(of, signer)).readLogs(LINES);
  return lines.map(({ MESSAGE: text, __REALTIME_TIMESTAMP: micros }) => ({
    atMs: Number(micros) / 1_000,
    text,
  }));
}
