import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { AppError, type ProgramRun, programOf, type RuntimeName, sha256Hex } from '@skerry/protocol';
import { ControlGroups } from '../../groups/control-groups.ts';
import { findTrees, groupNameOf } from '../../groups/trees.ts';
import { type ProgramAnswer, Programs, type ProgramsOptions } from '../programs.ts';
import type { SandboxCall, SandboxCode } from '../sandbox/sandbox.ts';
import type { AskedVolume } from '../volumes/asked.ts';

export interface TestProgram {
  readonly memoryMib?: number;
  readonly timeoutSeconds?: number;
  readonly encoding?: SandboxCode['encoding'];
  readonly entrypoint?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly AskedVolume[];
  readonly owner?: string;
}

/** What became of a call, in one line. */
export interface Outcome {
  readonly code: string;
  readonly text: string;
}

export const callOf = (variables: unknown = {}, more: Partial<SandboxCall> = {}): SandboxCall => ({
  ...{ method: 'POST', path: '/', query: '', headers: {}, isRun: true, body: Buffer.alloc(0) },
  variables,
  ...more,
});

/** Only what hangs takes as long: what has another limit to meet shall meet that. */
const TIMEOUT_SECONDS = 60;

let opened = 0;

/** A real room of programs with a directory of its own; programs are put into it without messages. */
export class TestPrograms implements AsyncDisposable {
  readonly programs: Programs;
  readonly runs: ProgramRun[] = [];
  readonly directory: string;
  readonly nodeId = sha256Hex(`test ${process.pid} ${++opened}`);

  private constructor(directory: string, options: Partial<ProgramsOptions>) {
    this.directory = directory;
    this.programs = Programs.open({
      core: new CoreClient({ url: 'http://127.0.0.1:1' }),
      checkLag: async () => {},
      nodeId: this.nodeId,
      dataDir: directory,
      cacheDir: directory,
      memoryMib: 1024,
      spares: 1,
      idleMs: 60_000,
      onRun: (run) => this.runs.push(run),
      log: createLogger('test', 'error'),
      ...options,
    });
  }

  static async open(options: Partial<ProgramsOptions> = {}): Promise<TestPrograms> {
    return new TestPrograms(await mkdtemp(join(tmpdir(), 'skerry-programs-')), options);
  }

  /** What holds the control groups of its sandboxes, in each tree. */
  get groupHomes(): readonly string[] {
    return new ControlGroups(findTrees()!, groupNameOf(this.nodeId)).homes;
  }

  /** The hash under which it can be called. */
  add(runtime: RuntimeName, code: string | Buffer, options: TestProgram = {}): string {
    const {
      memoryMib = 64,
      timeoutSeconds = TIMEOUT_SECONDS,
      encoding = 'plain',
      entrypoint = null,
      environment = {},
      volumes = [],
      owner = '0x0',
    } = options;
    const bytes = Buffer.from(code as string);
    const hash = sha256Hex(Buffer.concat([Buffer.from(`${runtime} ${JSON.stringify(options)} `), bytes]));
    const content = { name: 'test', code: 'in a test', runtime, memory: memoryMib, timeout: timeoutSeconds };
    this.programs.library.add({
      ...{ hash, owner, runtime, codeRef: hash, volumes },
      program: programOf(content),
      code: { bytes, encoding, entrypoint, environment, memoryMib, cpus: 1 },
    });
    return hash;
  }

  run(
    hash: string,
    variables: unknown = {},
    more: Partial<SandboxCall> = {},
    client = 'test',
  ): Promise<ProgramAnswer> {
    return this.programs.run(hash, callOf(variables, more), client);
  }

  async outcomeOf(hash: string, variables: unknown = {}, more: Partial<SandboxCall> = {}): Promise<Outcome> {
    try {
      const { result } = await this.run(hash, variables, more);
      return result.kind === 'answer'
        ? { code: String(result.status), text: result.body.toString('utf8') }
        : { code: 'PROGRAM_FAILED', text: result.traceback };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { code: error.code, text: error.message };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.programs[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
  }
}
