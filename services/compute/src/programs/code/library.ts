import { availableParallelism } from 'node:os';
import type { CoreClient } from '@skerry/client';
import { FairSlots, type Held, type ShareLimits, Shares } from '@skerry/kit';
import { AppError, type NetworkVolume, type Program, type RuntimeName } from '@skerry/protocol';
import { findMessage, resolveFile, resolveMessage } from '../../files/message.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { SandboxCode } from '../sandbox/sandbox.ts';
import { type AskedVolume, readVolumes } from '../volumes/asked.ts';
import { CodeFiles } from './files.ts';
import { encodingOf, memoryOf, type RuntimeTable, readProgram, runtimeOf } from './program.ts';

/** A program, ready to be put into a sandbox. */
export interface LoadedProgram {
  readonly hash: string;
  readonly owner: string;
  readonly program: Program;
  readonly runtime: RuntimeName;
  readonly code: SandboxCode;
  readonly volumes: readonly AskedVolume[];
  /** What names its code: the file, or the program itself where the code is in its message. */
  readonly codeRef: string;
}

/** The same for what may share a sandbox: another version of the code is put into another one. */
export const keyOf = ({ hash, codeRef, volumes }: Pick<LoadedProgram, 'hash' | 'codeRef' | 'volumes'>) =>
  `${hash} ${codeRef} ${JSON.stringify(volumes)}`;

/** The program that a key is of. */
export const hashIn = (key: string): string => key.slice(0, key.indexOf(' '));

/** A program whose code stays in memory until it is let go of. */
export interface UsedProgram extends Disposable {
  readonly program: LoadedProgram;
}

interface Entry {
  readonly loaded: LoadedProgram;
  /** Infinity where it is part of the node. */
  checkedAtMs: number;
  isChecking: boolean;
}

export interface LibraryOptions {
  readonly core: CoreClient;
  readonly directory: string;
  readonly runtimes: RuntimeTable;
  /** Throws while the core node lacks what its peers have (caught-up.ts). */
  readonly checkLag: () => Promise<void>;
  /** Told of a program that may not be run any more, or that has a newer version. */
  readonly onGone: (key: string) => void;
  /** Told of a program that was forgotten. */
  readonly onForgotten: (hash: string) => void;
  /** What the code of all programs that are held may take; as CODE_BYTES_MAX by default. */
  readonly codeBytesMax?: number;
  /** What the code of programs that are called may take; as CODE_IN_USE by default. */
  readonly codeInUse?: ShareLimits;
}

/** Programs held in memory, and their code. What is let go of is read from the disk again. */
const PROGRAMS_MAX = 256;
const CODE_BYTES_MAX = 256 * 1024 * 1024;
/** The code of programs that are called, which is in memory whatever the library lets go of. A client is an owner. */
const CODE_IN_USE: ShareLimits = { total: 512 * 1024 * 1024, reserve: 0, perClient: 256 * 1024 * 1024 };
/** After this time a call asks the core node again, beside being answered, whether the program is still in force. */
const CHECK_AFTER_MS = 15_000;

const GONE = ['MESSAGE_FORGOTTEN', 'PROGRAM_NOT_FOUND'];

/** Programs by hash: read from the core node, checked by their hashes, and kept while they are called. */
export class Library {
  readonly #options: LibraryOptions;
  readonly #files: CodeFiles;
  /** What was read, in the order of last use. */
  readonly #entries = new Map<string, Entry>();
  /** What is being read: whoever asks for what does not exist takes the place of nothing that does. */
  readonly #loading = new Map<string, Promise<LoadedProgram>>();
  readonly #codeInUse: Shares;
  /** Programs that are called: by how many calls, and their share of what is in use. */
  readonly #used = new Map<LoadedProgram, { calls: number; readonly share: Held }>();
  readonly #fetches = new FairSlots(PROGRAM_LIMITS.codeFetched);

  constructor(options: LibraryOptions) {
    this.#options = options;
    this.#files = new CodeFiles(options.core, options.directory);
    this.#codeInUse = new Shares(options.codeInUse ?? CODE_IN_USE);
  }

  /** A program that is part of the node, and known by no core node. */
  add(loaded: LoadedProgram): void {
    this.#entries.set(loaded.hash, { loaded, checkedAtMs: Infinity, isChecking: false });
  }

  /**
   * @throws AppError PROGRAM_NOT_FOUND, MESSAGE_FORGOTTEN, PROGRAM_UNSUPPORTED; RATE_LIMITED, OVERLOADED where much else is fetched;
   *   and what a file may not be had for
   */
  async get(hash: string): Promise<LoadedProgram> {
    const entry = this.#entries.get(hash);
    if (!entry) return this.#load(hash);
    this.#entries.delete(hash);
    this.#entries.set(hash, entry);
    if (performance.now() - entry.checkedAtMs > CHECK_AFTER_MS && !entry.isChecking)
      void this.#check(hash, entry);
    return entry.loaded;
  }

  /**
   * A program for a call, which lets go of it at its end.
   * @throws AppError OVERLOADED where the code of programs that are called takes too much, and what `get` throws
   */
  async use(hash: string): Promise<UsedProgram> {
    const program = await this.get(hash);
    const used = this.#used.get(program) ?? { calls: 0, share: this.#takeShare(program) };
    this.#used.set(program, used);
    used.calls++;
    return {
      program,
      [Symbol.dispose]: () => {
        if (--used.calls > 0) return;
        this.#used.delete(program);
        used.share.release();
      },
    };
  }

  #takeShare({ owner, code }: LoadedProgram): Held {
    const share = this.#codeInUse.take({ key: owner, isExempt: owner === '' }, code.bytes.length);
    if (typeof share !== 'string') return share;
    const whose = share === 'share' ? ' of one owner' : '';
    throw new AppError(
      'OVERLOADED',
      `the code of the programs${whose} that are being called takes too much memory`,
    );
  }

  /** Only where it is in memory. */
  find(hash: string): LoadedProgram | undefined {
    return this.#entries.get(hash)?.loaded;
  }

  /** Whoever asks while it is read shares the reading. A failure is told to those who wait for it, and tried again by the next one. */
  #load(hash: string): Promise<LoadedProgram> {
    const known = this.#loading.get(hash);
    if (known) return known;
    const loading = this.#loadNow(hash).finally(() => this.#loading.delete(hash));
    this.#loading.set(hash, loading);
    return loading;
  }

  async #loadNow(hash: string): Promise<LoadedProgram> {
    const checkedAtMs = performance.now();
    const loaded = await this.#read(hash);
    this.#entries.set(hash, { loaded, checkedAtMs, isChecking: false });
    this.#dropOldest();
    this.#dropLargest(hash);
    return loaded;
  }

  #dropOldest(): void {
    for (const [hash, { checkedAtMs }] of this.#entries) {
      if (this.#entries.size <= PROGRAMS_MAX) return;
      if (checkedAtMs !== Infinity) this.#entries.delete(hash);
    }
  }

  /** Lets go of the largest until all code has room: whoever brings much takes no memory from those who bring little. */
  #dropLargest(except: string): void {
    const { codeBytesMax = CODE_BYTES_MAX } = this.#options;
    const bytesOf = ({ loaded: { code } }: Entry) => code.bytes.length;
    const entries = [...this.#entries.values()].filter(({ checkedAtMs }) => checkedAtMs !== Infinity);
    let bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
    for (const entry of entries.sort((one, other) => bytesOf(other) - bytesOf(one))) {
      if (bytes <= codeBytesMax) return;
      if (entry.loaded.hash === except) continue;
      this.#entries.delete(entry.loaded.hash);
      bytes -= bytesOf(entry);
    }
  }

  async #readMessage(hash: string) {
    const answer = await findMessage(this.#options.core, hash).catch((error: unknown) => {
      // As opposed to its code or a volume: then its log tells why it does not run.
      if (error instanceof AppError && error.code === 'MESSAGE_FORGOTTEN') this.#options.onForgotten(hash);
      throw error;
    });
    return answer && readProgram(this.#options.core, hash, answer);
  }

  async #read(hash: string): Promise<LoadedProgram> {
    const message = await this.#readMessage(hash);
    if (!message) throw new AppError('PROGRAM_NOT_FOUND', `the core node knows no program ${hash}`);
    const { owner, program, volumes } = message;
    const runtime = await this.#findRuntime(program);
    const { code } = program;
    const codeRef = await this.#findCode(hash, program);
    const fetchCode = () => this.#files.read(codeRef);
    const bytes =
      code.kind === 'source'
        ? Buffer.from(code.text)
        : await this.#fetches.run({ key: owner, isExempt: false }, fetchCode);
    return {
      ...{ hash, owner, program, runtime, codeRef },
      volumes: await this.#findVolumes(volumes),
      code: {
        bytes,
        encoding: encodingOf(program, runtime, bytes),
        entrypoint: code.kind === 'file' ? code.entrypoint : null,
        environment: program.variables,
        memoryMib: memoryOf(program),
        cpus: Math.min(program.vcpus, availableParallelism()),
      },
    };
  }

  #findCode(hash: string, { code }: Program): Promise<string> | string {
    return code.kind === 'source' ? hash : resolveFile(this.#options.core, code);
  }

  #findVolumes(volumes: readonly NetworkVolume[]): Promise<AskedVolume[]> {
    return readVolumes(volumes, (ref) => resolveFile(this.#options.core, ref));
  }

  async #findRuntime({ runtime }: Program): Promise<RuntimeName> {
    const { core, runtimes } = this.#options;
    if (runtime.kind === 'named') return runtime.runtime;
    // An image that stands for the first version stands for the later ones, unless they have one of their own.
    const newest = runtime.useLatest ? await resolveMessage(core, runtime) : runtime.ref;
    return runtimeOf(runtimes[newest] === undefined ? runtime.ref : newest, runtimes);
  }

  /** Throws as reading it does. */
  async #isNewest(hash: string, loaded: LoadedProgram): Promise<boolean> {
    const message = await this.#readMessage(hash);
    // A core node that lost its memory is no reason to end a program.
    if (!message) return true;
    const { program, volumes } = message;
    const codeRef = await this.#findCode(hash, program);
    const key = keyOf({ hash, codeRef, volumes: await this.#findVolumes(volumes) });
    return key === keyOf(loaded) && (await this.#findRuntime(program)) === loaded.runtime;
  }

  async #check(hash: string, entry: Entry): Promise<void> {
    entry.isChecking = true;
    const { loaded } = entry;
    try {
      // What it says until then may be an older version, or a FORGET that will not count.
      await this.#options.checkLag();
      const isNewest = await this.#isNewest(hash, loaded);
      entry.checkedAtMs = performance.now();
      if (!isNewest) {
        this.#drop(loaded);
        // Why it cannot be read is told to whoever calls it next.
        void this.#load(hash).catch(() => {});
      }
    } catch (error) {
      // A core node that is away, or lacks what its peers have, takes nothing from a program that is known.
      entry.checkedAtMs = performance.now();
      if (!(error instanceof AppError && GONE.includes(error.code))) return;
      this.#drop(loaded);
    } finally {
      entry.isChecking = false;
    }
  }

  #drop(loaded: LoadedProgram): void {
    this.#entries.delete(loaded.hash);
    this.#options.onGone(keyOf(loaded));
  }
}
