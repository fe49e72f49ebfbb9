import { buildNetworkMessage, buildStoredMessage, type Signer } from '@skerry/client';
import {
  AppError,
  isClockFault,
  LIMITS,
  METRICS_POST_TYPES,
  SCORING_CHANNEL,
  WIRE_KIND,
} from '@skerry/protocol';
import type { AutonomousSystem } from './asn.ts';
import type { HourEntry, SignedReport } from './hour-store.ts';

/** Whether what is published would be refused again, however often it is sent. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof AppError &&
  ['invalid', 'refused', 'too_large'].includes(error.kind) &&
  !isClockFault(error);

export interface Publisher {
  readonly signer: Signer;
  /** The monitor's own public address, or empty. */
  readonly serverAddress: string;
  readonly system: AutonomousSystem | undefined;
  readonly tags: readonly string[];
}

/** Records in one message: a page of ten such messages is one that core nodes answer. */
const RECORDS_BYTES_MAX = 1024 ** 2;

/** What is said of a node has a bound, the number of nodes that answer has none: in parts that a message can have. */
function partsOf(entries: readonly HourEntry[]): HourEntry[][] {
  const parts: HourEntry[][] = [[]];
  let size = 0;
  for (const entry of entries) {
    const bytes = Buffer.byteLength(JSON.stringify(entry.record)) + 1;
    if (size > 0 && size + bytes > RECORDS_BYTES_MAX) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)!.push(entry);
    size += bytes;
  }
  return parts;
}

/** The messages of one hour: one of them where the nodes are not very many. */
export const signReports = (
  entries: readonly HourEntry[],
  publisher: Publisher,
  timeSeconds: number,
): SignedReport[] => partsOf(entries).map((part) => signReport(part, publisher, timeSeconds));

/** Inline where it fits, else as a stored file that the message names. */
function signReport(entries: readonly HourEntry[], publisher: Publisher, timeSeconds: number): SignedReport {
  const { signer, serverAddress, system, tags } = publisher;
  const recordsOf = (kind: HourEntry['kind']) =>
    entries.filter((entry) => entry.kind === kind).map((entry) => entry.record);
  const metrics = {
    ...(serverAddress === '' ? {} : { server: serverAddress }),
    ...(system
      ? { server_asn: system.asn, ...(system.name === null ? {} : { server_as_name: system.name }) }
      : {}),
    [WIRE_KIND.core]: recordsOf('core'),
    [WIRE_KIND.compute]: recordsOf('compute'),
  };
  const content = { type: METRICS_POST_TYPES[0], content: { version: '1.0', tags, metrics } };
  const draft = { type: 'POST', channel: SCORING_CHANNEL, time: timeSeconds, content };
  // Address and time come before the content.
  const room = LIMITS.inlineContentChars - 256;
  return JSON.stringify(content).length <= room
    ? buildNetworkMessage(draft, signer)
    : buildStoredMessage(draft, signer);
}
