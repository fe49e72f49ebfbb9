import type { LogLineView } from '@skerry/protocol/api/compute/machines';
import type { ConsoleLine } from '../instances/console/console-log.ts';
import type { Instances } from '../instances/instances.ts';
import type { InstanceWorker } from '../instances/worker/worker.ts';
import { OPERATED, type OwnerAccess, type SignedRequest } from '../owner/access.ts';
import type { ProgramLog } from '../programs/logs.ts';
import type { Programs } from '../programs/programs.ts';
import type { LogLine } from '../programs/sandbox/log-tail.ts';
import { absent } from './absent.ts';

export interface LogSources {
  readonly instances: Instances;
  /** Undefined where the node runs none. */
  readonly programs: Pick<Programs, 'logs'> | undefined;
  readonly access: OwnerAccess;
}

/** What the node keeps of the words of an instance, or of a program that it ran. */
export interface LogSource {
  /** The hash of its message. */
  readonly ref: string;
  /** What its lines come from, where they come from one place. */
  readonly file: 'console' | undefined;
  /** Why nothing is to be expected now, where that is so. */
  readonly silence: string | undefined;
  /** The last lines, oldest first. */
  read(limit: number): Promise<readonly LogLine[]>;
  /**
   * Tells of every line from now on. Returns how to stop; undefined when too many listen already.
   * @param end called when none comes any more: it is not on this node any more, or was forgotten
   */
  listen(tell: (line: LogLine) => void, end: () => void): (() => void) | undefined;
}

interface Found extends LogSource {
  readonly what: (typeof OPERATED)[keyof typeof OPERATED];
  readonly owner: string | undefined;
}

/** A line in the form of systemd's journal, whose times are microseconds. */
export const logLineView = ({ ref, file }: LogSource, { atMs, type, text }: LogLine): LogLineView => ({
  SYSLOG_IDENTIFIER: `vm-${ref}-${type}`,
  MESSAGE: text,
  file: file ?? type,
  __REALTIME_TIMESTAMP: String(atMs * 1000),
});

const spoken = ({ atMs, text, isNodes }: ConsoleLine): LogLine => ({
  atMs,
  type: isNodes ? 'system' : 'stdout',
  text,
});

function machineLog(ref: string, { console, record }: InstanceWorker): Found {
  const { phase, reason } = record.status ?? {};
  const why = `the instance is not running: it is ${phase ?? 'new'}${reason ? ` (${reason.message})` : ''}`;
  return {
    ...{ ref, file: 'console', what: OPERATED.instance, owner: record.wanted.owner },
    silence: phase === 'running' ? undefined : why,
    read: async (limit) => (await console.read(limit)).map(spoken),
    listen: (tell, end) => console.listen((line) => tell(spoken(line)), end),
  };
}

const programLog = ({ hash, owner, tail }: ProgramLog): Found => ({
  ...{ ref: hash, file: undefined, silence: undefined, what: OPERATED.program, owner },
  read: async (limit) => tail.list().slice(-limit),
  listen: (tell, end) => tail.listen(tell, end),
});

function find({ instances, programs }: LogSources, ref: string): Found | undefined {
  const worker = instances.find(ref);
  if (worker) return machineLog(ref, worker);
  const program = programs?.logs.find(ref);
  // Those that are part of the node are nobody's.
  return program === undefined || program.owner === '' ? undefined : programLog(program);
}

/**
 * The log of an instance or a program, for whoever may read it: what is not here is not told apart before the signature is
 * checked.
 *
 * @throws AppError INSTANCE_NOT_FOUND, INSTANCE_NOT_READY, and what OwnerAccess.permit does
 */
export async function openLog(
  sources: LogSources,
  signed: SignedRequest,
  ref: string,
): Promise<LogSource & { readonly owner: string }> {
  const { access } = sources;
  const found = find(sources, ref);
  if (!found) {
    await access.identify(signed);
    throw absent(
      sources.instances,
      ref,
      'this node does not have an instance with this id, and has run no program with this hash since it started',
    );
  }
  await access.permit(signed, found.owner, found.what);
  // Permitted is nobody where the owner is not known.
  return { ...found, owner: found.owner! };
}
