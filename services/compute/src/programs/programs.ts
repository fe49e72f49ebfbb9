import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import type { Logger } from '@skerry/kit';
import { AppError, type ProgramRun, type RuntimeName } from '@skerry/protocol';
import { unless } from '../files/unless.ts';
import type { GroupUsage } from '../groups/control-group.ts';
import { ControlGroups } from '../groups/control-groups.ts';
import { clearLeftGroups, noteGroups } from '../groups/left-groups.ts';
import { findTrees, groupNameOf } from '../groups/trees.ts';
import { storableText } from '../publish/storable.ts';
import { hashIn, keyOf, Library, type LoadedProgram } from './code/library.ts';
import type { RuntimeTable } from './code/program.ts';
import { ProgramLogs } from './logs.ts';
import { attachEarly, type Order, type Start } from './places.ts';
import { Pool } from './pool.ts';
import { type LogLine, LogTail } from './sandbox/log-tail.ts';
import { findRuntimes } from './sandbox/runtimes.ts';
import type { Sandbox, SandboxCall, SandboxResult } from './sandbox/sandbox.ts';
import { renderSeccompFilter } from './sandbox/seccomp.ts';
import { type Prepared, Volumes } from './volumes/volumes.ts';

export interface ProgramsOptions {
  readonly core: CoreClient;
  /** Throws while the core node lacks what its peers have (caught-up.ts). */
  readonly checkLag: () => Promise<void>;
  readonly nodeId: string;
  readonly dataDir: string;
  readonly cacheDir: string;
  /** For programs that name a disk image as their runtime; none by default. */
  readonly runtimeTable?: RuntimeTable;
  readonly memoryMib: number;
  /** Disk for all volumes of programs; none by default. */
  readonly volumesGib?: number;
  readonly spares: number;
  readonly idleMs: number;
  /** Told of each run of a program that came by a message. */
  readonly onRun: (run: ProgramRun) => void;
  /** How long a call may take more than its share while others wait; as PROGRAM_LIMITS has it by default. */
  readonly contendedMs?: number;
  readonly log: Logger;
}

/** What a sandbox takes that holds a program. */
export interface SandboxUsage extends ReturnType<Sandbox['readUsage']> {
  readonly hash: string;
  readonly owner: string;
  readonly reservedMib: number;
}

/** What a call was answered, and how it went. */
export interface ProgramAnswer {
  readonly program: LoadedProgram;
  readonly result: SandboxResult;
  readonly start: Start;
  readonly runId: string;
}

/** Users of sandboxes are numbers far above those of people and daemons, other ones for each node of a machine. */
const UID_BASE = 0x60000000;
const UID_DIGITS = 5;
const UIDS_PER_NODE = 256;

/** The node itself, among callers. */
export const OWN = 'node';
const PROBE_TIMEOUT_MS = 20_000;
const PROBE = { encoding: 'plain', entrypoint: null, environment: {}, memoryMib: 64, cpus: 1 } as const;
const PROBE_CALL: SandboxCall = {
  ...{ method: 'GET', path: '/', query: '', headers: {}, variables: {} },
  isRun: true,
  body: Buffer.alloc(0),
};

/** Where volumes of programs are, below a data directory. */
export const volumesDirectory = (dataDir: string) => join(dataDir, 'programs', 'volumes');

/** Runs programs, each in a sandbox of its own. */
export class Programs implements AsyncDisposable {
  readonly runtimes: readonly RuntimeName[];
  readonly library: Library;
  readonly logs = new ProgramLogs();
  readonly volumes: Volumes;
  readonly #options: ProgramsOptions;
  readonly #groups: ControlGroups;
  readonly #pool: Pool;

  private constructor(options: ProgramsOptions, groups: ControlGroups, filterPath: string) {
    const { core, checkLag, nodeId, cacheDir, memoryMib, spares, idleMs, contendedMs, log } = options;
    const { runtimeTable = {} } = options;
    const kits = findRuntimes();
    this.#options = options;
    this.#groups = groups;
    this.runtimes = [...kits.keys()];
    this.#pool = new Pool({
      ...{ kits, groups, filterPath, memoryMib, spares, idleMs, contendedMs, log },
      uidBase: UID_BASE + Number.parseInt(nodeId.slice(0, UID_DIGITS), 16) * UIDS_PER_NODE,
    });
    this.volumes = new Volumes({
      core,
      directory: volumesDirectory(options.dataDir),
      limitMib: Math.floor((options.volumesGib ?? 0) * 1024),
    });
    this.library = new Library({
      ...{ core, checkLag },
      directory: join(cacheDir, 'programs'),
      runtimes: runtimeTable,
      onGone: (key) => void this.#pool.drop(key),
      onForgotten: (hash) => this.logs.delete(hash),
    });
  }

  /** Throws HOST_NOT_READY where the kernel cannot hold programs to their limits. */
  static open(options: ProgramsOptions): Programs {
    const trees = findTrees();
    if (!trees)
      throw new AppError(
        'HOST_NOT_READY',
        'programs need the control groups memory, pids and cpu, which are not mounted',
      );
    const groups = new ControlGroups(trees, groupNameOf(options.nodeId));
    const directory = join(options.dataDir, 'programs');
    mkdirSync(directory, { recursive: true });
    noteGroups(options.dataDir, groups.homes);
    try {
      groups.prepare();
    } catch (error) {
      throw new AppError(
        'HOST_NOT_READY',
        `cannot create control groups for programs: ${(error as Error).message}`,
      );
    }
    const filterPath = join(directory, 'system-calls.bpf');
    writeFileSync(filterPath, renderSeccompFilter());
    return new Programs(options, groups, filterPath);
  }

  /**
   * Calls a program and waits for its answer.
   *
   * @param client who calls: callers share the node out among themselves
   * @param ending ends the call with its reason, an AppError; with OVERLOADED where the program was not called yet
   * @throws AppError PROGRAM_NOT_FOUND, MESSAGE_FORGOTTEN, PROGRAM_UNSUPPORTED, NO_RUNNER, OVERLOADED,
   *   RATE_LIMITED, PROGRAM_TIMED_OUT, PROGRAM_CRASHED, PROGRAM_OUTPUT_TOO_LARGE
   */
  async run(hash: string, call: SandboxCall, client: string, ending?: AbortSignal): Promise<ProgramAnswer> {
    using used = await heldUnless(ending, this.library.use(hash));
    const { program } = used;
    const timeoutMs = program.program.timeoutSeconds * 1000;
    const runId = randomUUID();
    this.#checkRuntime(program);
    using volumes = await heldUnless(ending, this.volumes.prepare(program));
    const order = { ...this.#orderOf(program, client, volumes), ending };
    return await this.#pool.use(order, async (sandbox, start) => {
      if (ending?.aborted) throw notCalled(ending);
      // Also where it is warm: its log is one of those that were used last.
      this.logs.use(program);
      const startedAtMs = Date.now();
      const begunMs = performance.now();
      const tell = (outcome: ProgramRun['outcome'], status: number, reason: ProgramRun['reason']) => {
        const durationMs = Math.round(performance.now() - begunMs);
        const times = { started_at_ms: startedAtMs, duration_ms: durationMs };
        if (program.owner !== '')
          this.#options.onRun({ run_id: runId, program_hash: hash, ...times, outcome, status, reason });
      };
      const end = () => sandbox.end(ending?.reason as AppError);
      ending?.addEventListener('abort', end, { once: true });
      try {
        const result = await sandbox.call(call, timeoutMs);
        if (result.kind === 'answer') tell('answered', result.status, null);
        else tell('failed', 500, { code: 'PROGRAM_FAILED', message: lastLineOf(result.traceback) });
        return { program, result, start, runId };
      } catch (error) {
        if (error instanceof AppError) {
          const outcome = error.code === 'PROGRAM_TIMED_OUT' ? 'timed_out' : 'crashed';
          tell(outcome, error.httpStatus, {
            code: error.code,
            message: storableText(error.message, REASON_CHARS),
          });
        }
        throw error;
      } finally {
        ending?.removeEventListener('abort', end);
      }
    });
  }

  /** Whether a program is kept running: calls of it take no sandbox from others. */
  isKept(hash: string): boolean {
    const program = this.library.find(hash);
    return program !== undefined && this.#pool.isKept(keyOf(program));
  }

  /**
   * Keeps a program running; calls of it go there. Resolves when it ended by itself or the signal did.
   *
   * @throws AppError PROGRAM_FAILED, and what `run` throws
   */
  async keep(hash: string, signal: AbortSignal): Promise<void> {
    const program = await this.library.get(hash);
    // Why it cannot be kept is told there, too.
    this.logs.use(program);
    if (program.runtime === 'wasm')
      throw new AppError(
        'PROGRAM_UNSUPPORTED',
        'a WASI command ends with each call and cannot be kept running',
      );
    this.#checkRuntime(program);
    using volumes = await this.volumes.prepare(program);
    if (signal.aborted) return;
    const result = await this.#keepAttached(
      { ...this.#orderOf(program, OWN, volumes), isKept: true },
      signal,
    );
    if (result?.kind === 'failed') throw new AppError('PROGRAM_FAILED', lastLineOf(result.traceback));
  }

  /** Nothing ends for a program whose volumes cannot be had. */
  async #keepAttached(order: Order, signal: AbortSignal): Promise<SandboxResult | undefined> {
    // Nor are volumes made for one that has no room beside what is kept.
    this.#pool.findGivingWay(order);
    const early = await attachEarly(order);
    try {
      return signal.aborted ? undefined : await this.#pool.keep(early.order, signal);
    } finally {
      await early.end().catch((error: unknown) => {
        this.#options.log.warn(
          { err: error, program: order.key },
          'volumes of a program could not be let go',
        );
      });
    }
  }

  #checkRuntime({ runtime }: LoadedProgram): void {
    if (!this.runtimes.includes(runtime))
      throw new AppError('NO_RUNNER', `this node has no runtime ${runtime}`);
  }

  #orderOf(program: LoadedProgram, client: string, prepared: Prepared): Order {
    const { owner, runtime, code, volumes } = program;
    const attach = volumes.length > 0 ? () => prepared.attach() : undefined;
    return { key: keyOf(program), client, owner, runtime, code, log: () => this.logs.use(program), attach };
  }

  /** Whether a sandbox can be made here and answers. Throws PROGRAM_CRASHED, with what the machine complained. */
  async check(): Promise<void> {
    const log = new LogTail();
    const code = { ...PROBE, bytes: Buffer.from('function main() {}') };
    const order = { key: 'probe', client: OWN, owner: '', runtime: 'nodejs', code, log: () => log } as const;
    await this.#pool.use(order, (sandbox) => sandbox.call(PROBE_CALL, PROBE_TIMEOUT_MS));
    await this.#pool.drop(order.key);
  }

  /** What the program wrote lately, if it ran since the node started. */
  listLog(hash: string): readonly LogLine[] {
    return this.logs.find(hash)?.tail.list() ?? [];
  }

  /** Sandboxes that hold a program. */
  get sandboxes(): number {
    return this.#pool.list().length;
  }

  /** What each of these takes. */
  readUsage(): SandboxUsage[] {
    return this.#pool.list().flatMap(({ key, owner, reservedMib, sandbox }) => {
      const hash = hashIn(key ?? '');
      return sandbox ? [{ hash, owner, reservedMib, ...sandbox.readUsage() }] : [];
    });
  }

  /** What all sandboxes took since the node was started, those that ended included. */
  readTotal(): GroupUsage {
    return this.#groups.readUsage();
  }

  get spares(): number {
    return this.#pool.spares;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]();
    await this.#groups.clear();
    await clearLeftGroups(this.#options.dataDir);
  }
}

/** No failure of the program: it may not even have been read. */
const notCalled = ({ reason }: AbortSignal) => new AppError('OVERLOADED', (reason as AppError).message);

/** What a call needs, unless the call is ended first: then it is let go of when it comes. */
async function heldUnless<T extends Disposable>(
  ending: AbortSignal | undefined,
  coming: Promise<T>,
): Promise<T> {
  if (!ending) return coming;
  try {
    return await unless(ending, coming);
  } catch (error) {
    if (!ending.aborted) throw error;
    coming.then(
      (late) => late[Symbol.dispose](),
      () => {},
    );
    throw notCalled(ending);
  }
}

/** Of why a run failed, what is reported: it may be in a program's own words. */
const REASON_CHARS = 500;

/** Of a traceback in Python the last line says what it was; in JavaScript the first one. */
function lastLineOf(traceback: string): string {
  const lines = traceback.trim().split('\n');
  const line = traceback.startsWith('Traceback')
    ? lines.at(-1)
    : lines.find((one) => /^\w*(Error|Exception|Uncaught)/.test(one));
  return storableText(line ?? lines[0] ?? '', REASON_CHARS);
}
