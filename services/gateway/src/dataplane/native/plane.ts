import { guarded } from '../guarded.ts';
import { earliest } from '../moments.ts';
import {
  type Attempts,
  type DataPlane,
  type DataPlaneOptions,
  type DataPlaneStats,
  DEFAULT_LIMITS,
  type ListenPorts,
  QUIC_WISHES,
  type Route,
  type RouteChange,
} from '../port.ts';
import { startAgain } from '../start-again.ts';
import { HttpSide } from '../ts/http/side.ts';
import { RouteTable } from '../ts/routes.ts';
import { readAccess, readRefused } from './access.ts';
import { changeFrames, failureOfNumber, frame, uint32Frame } from './frames.ts';
import { COMMANDS, LISTEN_FAILURE, LISTENING, REPORTS, ROUTE_ANSWER } from './layout.ts';
import { PlaneProcess } from './plane-process.ts';
import { SharedStats } from './shared-stats.ts';

type Listening = ReturnType<typeof LISTENING.read>;
type RouteAnswer = ReturnType<typeof ROUTE_ANSWER.read>;

export interface NativePlaneOptions extends DataPlaneOptions {
  /** The program that `buildNativePlane` made. */
  readonly path: string;
  /** A socket in the file system by which listeners pass from one gateway to the next. */
  readonly handover?: {
    readonly path: string;
    /** Take the listeners from a gateway that runs, not only from what one that was killed left behind. */
    readonly replace: boolean;
    /** How long connections that a replaced gateway has may last. */
    readonly drainMs: number;
    /** Told when another gateway has taken the listeners. */
    readonly onReplaced: () => void;
  };
  readonly onTrouble: (details: object, message: string) => void;
  /** Told when the program runs again after it fell. */
  readonly onRecovery?: (message: string) => void;
}

/** How long a plane whose gateway was killed serves on, for a new gateway to take its place. */
const ORPHAN_MS = 10_000;
const QUESTION_TIMEOUT_MS = 2_000;

const ERRNO_NAMES: Readonly<Record<number, string>> = {
  13: 'EACCES',
  97: 'EAFNOSUPPORT',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
  // Of a gateway that was to be replaced, and goes on.
  110: 'ETIMEDOUT',
};

function listenError(errno: number, address: string, port: number): Error {
  const code = ERRNO_NAMES[errno] ?? `errno ${errno}`;
  return Object.assign(new Error(`listen ${code}: ${address}:${port}`), {
    code,
    address,
    port,
    syscall: 'listen',
  });
}

/** A port that several processes share carries none: each would get datagrams of the others' flows. */
const wishOf = ({ quic = 'no', sharePort }: DataPlaneOptions) => (sharePort ? 'no' : quic);

function quicOf(
  options: DataPlaneOptions,
  { port, quicError, quicRoomBytes, isRoomScarce }: Listening,
): Pick<ListenPorts, 'noQuic' | 'quicHint'> {
  if (wishOf(options) === 'no')
    return { noQuic: `SKERRY_GATEWAY_${options.sharePort ? 'SHARE_PORT is yes' : 'QUIC is no'}` };
  if (quicError !== 0)
    return {
      noQuic: `UDP port ${port} cannot be opened: ${ERRNO_NAMES[quicError] ?? `errno ${quicError}`}`,
    };
  const room = `the system keeps ${quicRoomBytes} bytes of datagrams, so bursts lose some`;
  return { noQuic: null, ...(isRoomScarce ? { quicHint: `${room}: set net.core.rmem_max=4194304` } : {}) };
}

/**
 * The data plane whose TLS side is a small program of its own (native/): it accepts, reads the name, connects and relays, with
 * the kernel doing the copying. This class decides: it keeps the program's table as the routes are, reads its figures, starts
 * it again should it ever fall. Plain HTTP stays in TypeScript.
 */
export class NativeDataPlane implements DataPlane {
  readonly #options: NativePlaneOptions;
  readonly #routes = new RouteTable();
  readonly #http: HttpSide;
  readonly #stats = new SharedStats();
  readonly #questions = new Map<number, (answer: RouteAnswer | undefined) => void>();
  #lastQuestion = 0;
  #process: PlaneProcess | undefined;
  #settled: ((opened: Listening) => void) | undefined;
  #refused: ((error: Error) => void) | undefined;
  /** Aborted where the end of the program is meant. */
  readonly #stopped = new AbortController();
  #restarting: Promise<void> | undefined;

  constructor(options: NativePlaneOptions) {
    this.#options = guarded(options);
    this.#http = new HttpSide(this.#options, this.#routes);
  }

  /** Of the program, while it runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** What the program holds for connections and clients, with what the allocator adds. */
  get connectionBytes(): number {
    return this.#stats.read().connectionBytes;
  }

  async listen(): Promise<ListenPorts> {
    const { httpsPort, handover, sharePort } = this.#options;
    try {
      // A gateway that is being replaced listens until it is told of that, which is about now. TLS comes last: as the listeners
      // pass, the other gives up, and nothing may fail after that.
      const isShared = sharePort || handover?.replace;
      const http = await this.#http.listen(isShared ? 'shared' : handover ? 'shared_later' : 'alone');
      const opened = await this.#start(httpsPort);
      return { http, https: opened.port, ...quicOf(this.#options, opened) };
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #settings(port: number): [string, string | number][] {
    const { hosts, upstreamHttpsPort, sharePort, limits: given, handover, access } = this.#options;
    const limits = { ...DEFAULT_LIMITS, ...given };
    return [
      ...hosts.map((host): [string, string] => ['host', host]),
      ['port', port],
      ['instance_port', upstreamHttpsPort],
      ['share_port', Number(sharePort ?? false)],
      ['quic', QUIC_WISHES.indexOf(wishOf(this.#options))],
      ['max_connections', limits.maxConnections],
      ['max_undecided', limits.maxUndecided],
      ['max_per_client', limits.maxPerClient],
      ['max_per_instance', limits.maxPerInstance],
      ['hello_timeout_ms', limits.helloTimeoutMs],
      ['connect_timeout_ms', limits.connectTimeoutMs],
      ['answer_timeout_ms', limits.answerTimeoutMs],
      ['max_refusals', limits.maxRefusals],
      ['refusals_per_s', limits.refusalsPerSecond],
      ['max_unanswered', limits.maxUnanswered],
      ['unanswered_per_s', limits.unansweredPerSecond],
      ['max_stalled_bytes', limits.maxStalledBytes],
      ['idle_timeout_ms', limits.idleTimeoutMs],
      ['orphan_ms', ORPHAN_MS],
      ['upgrade_drain_ms', handover?.drainMs ?? 0],
      ['replace', Number(handover?.replace ?? false)],
      ['access_every', access?.every ?? 0],
      ...(handover ? [['handover', handover.path] satisfies [string, string]] : []),
    ];
  }

  /** Starts the program with the routes of now; resolves when it listens. */
  async #start(port: number): Promise<Listening> {
    const { path, onTrouble } = this.#options;
    const process = new PlaneProcess({
      path,
      settings: this.#settings(port),
      stats: this.#stats,
      onFrame: (type, payload) => this.#hear(type, payload, port),
      onNoise: (text) => onTrouble({ text }, 'the native data plane says'),
    });
    this.#process = process;
    const listening = new Promise<Listening>((resolve, reject) => {
      this.#settled = resolve;
      this.#refused = reject;
    });
    void process.ended.then(() => this.#ended(process));
    this.#writeTable(process);
    process.listen();
    try {
      const opened = await listening;
      void process.ended.then(() => this.#fell(process, opened.port));
      return opened;
    } catch (error) {
      await process.stop(0);
      throw error;
    }
  }

  #ended(process: PlaneProcess): void {
    this.#refused?.(new Error(`the native data plane ended: ${process.exit}`));
    for (const answer of this.#questions.values()) answer(undefined);
    if (this.#process === process) this.#process = undefined;
  }

  /** It ended after it had listened. */
  #fell({ exit }: PlaneProcess, port: number): void {
    const { onTrouble, onRecovery } = this.#options;
    const { signal } = this.#stopped;
    if (signal.aborted) return;
    onTrouble({ exit }, 'the native data plane exited; restarting it');
    this.#restarting = startAgain(
      async () => {
        await this.#start(port);
        onRecovery?.('the native data plane runs again');
      },
      signal,
      (error) => onTrouble({ err: error }, 'the native data plane did not start; trying again'),
    );
  }

  /** The whole table at once: a change between two frames of it would be undone by a later one. */
  #writeTable(process: PlaneProcess): void {
    process.write(uint32Frame(COMMANDS.begin, this.#routes.size));
    for (const bytes of changeFrames(this.#routes.routes())) process.write(bytes);
    process.write(frame(COMMANDS.commit));
  }

  #hear(type: string, payload: Buffer, port: number): void {
    switch (type) {
      case REPORTS.listening: {
        this.#settled?.(LISTENING.read(payload));
        break;
      }
      case REPORTS.notListening: {
        const { error, host } = LISTEN_FAILURE.read(payload);
        this.#refused?.(listenError(error, this.#options.hosts[host]!, port));
        break;
      }
      case REPORTS.answer: {
        const answer = ROUTE_ANSWER.read(payload);
        this.#questions.get(answer.id)?.(answer);
        break;
      }
      case REPORTS.access:
        this.#options.access?.tell(readAccess(payload));
        break;
      case REPORTS.refused:
        for (const refusal of readRefused(payload)) this.#options.onRefused?.(refusal);
        break;
      case REPORTS.handedOver:
        // What is open stays with the program, which ends by itself.
        this.#stopped.abort();
        this.#process?.letGo();
        this.#process = undefined;
        this.#options.handover?.onReplaced();
        break;
    }
  }

  replaceTable(routes: Iterable<Route>): void {
    this.#routes.replace(routes);
    if (this.#process) this.#writeTable(this.#process);
  }

  applyChanges(changes: Iterable<RouteChange>): void {
    const all = [...changes];
    this.#routes.apply(all);
    if (this.#process) for (const bytes of changeFrames(all)) this.#process.write(bytes);
  }

  stats(): DataPlaneStats {
    const { tls, quic } = this.#stats.read();
    return {
      routes: this.#routes.size,
      tls,
      quic,
      httpOpen: this.#http.open,
      httpYielded: this.#http.yielded,
      httpRequests: this.#http.requests,
      httpCounts: this.#http.counts,
      httpRefusals: this.#http.refusals,
      httpStalledBytes: this.#http.stalledBytes,
    };
  }

  async findAttempts(hostname: string): Promise<Attempts | undefined> {
    if (this.#routes.get(hostname) === undefined) return undefined;
    const answer = await this.#ask(hostname);
    const http = this.#routes.attempts(hostname);
    const { since, requests } = this.#routes.traffic(hostname);
    if (!answer?.isKnown) return { ...http, open: 0, traffic: this.#routes.traffic(hostname) };
    const later = (seconds: number, other: number | null) => Math.max(seconds, other ?? 0) || null;
    return {
      connectedAt: later(answer.connectedAt, http.connectedAt),
      failedAt: later(answer.failedAt, http.failedAt),
      failure: answer.failedAt > (http.failedAt ?? 0) ? failureOfNumber(answer.failure) : http.failure,
      open: answer.open,
      quic: { answeredAt: answer.quicAnsweredAt || null, refusedAt: answer.quicRefusedAt || null },
      traffic: {
        since: earliest(answer.since || null, since),
        connections: answer.connections,
        bytesToInstance: answer.bytesToInstance,
        bytesToClient: answer.bytesToClient,
        requests,
      },
    };
  }

  async #ask(hostname: string): Promise<RouteAnswer | undefined> {
    const process = this.#process;
    if (!process) return undefined;
    this.#lastQuestion = (this.#lastQuestion + 1) >>> 0;
    const id = this.#lastQuestion;
    const question = Buffer.alloc(4 + hostname.length);
    question.writeUInt32LE(id);
    question.write(hostname, 4, 'latin1');
    const answered = new Promise<RouteAnswer | undefined>((resolve) => this.#questions.set(id, resolve));
    const timer = setTimeout(() => this.#questions.get(id)?.(undefined), QUESTION_TIMEOUT_MS);
    process.write(frame(COMMANDS.question, question));
    try {
      return await answered;
    } finally {
      clearTimeout(timer);
      this.#questions.delete(id);
    }
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#stopped.abort();
    await Promise.all([this.#process?.stop(timeoutMs), this.#http.drain(timeoutMs)]);
    await this.close();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await Promise.all([this.#process?.stop(0), this.#restarting, this.#http.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
