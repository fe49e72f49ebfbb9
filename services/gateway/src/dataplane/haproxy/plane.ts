import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { networkOf } from '../../refusals/network.ts';
import { isTlsRefusal, newTlsCounts, noQuicCounts, type TlsCounts } from '../figures.ts';
import { guarded } from '../guarded.ts';
import { earliest } from '../moments.ts';
import {
  type Attempts,
  type DataPlane,
  type DataPlaneOptions,
  type DataPlaneStats,
  DEFAULT_LIMITS,
  type ListenPorts,
  type Route,
  type RouteChange,
} from '../port.ts';
import { startAgain } from '../start-again.ts';
import { HttpSide } from '../ts/http/side.ts';
import { openTogether, shut } from '../ts/listening.ts';
import { RouteTable } from '../ts/routes.ts';
import { AdminSocket } from './admin.ts';
import { addCounts, readCounts, readName } from './answers.ts';
import { haproxyConfig, TABLES } from './config-text.ts';
import { RouteFeed } from './feed.ts';
import { readLogLine } from './log-line.ts';
import { HaproxyProcess, inheritedFds } from './process.ts';
import { isHostname, RouteBook } from './route-book.ts';

export interface HaproxyPlaneOptions extends DataPlaneOptions {
  /** Path of the program. */
  readonly program: string;
  readonly onTrouble: (details: object, message: string) => void;
  /** Told when the program runs again after it fell. */
  readonly onRecovery?: (message: string) => void;
}

const COUNTERS = ['show stat -1 3 -1', `show table ${TABLES.outcomes}`] as const;

/** One HAProxy, from its start to its end. */
interface Run {
  readonly process: HaproxyProcess;
  readonly admin: AdminSocket;
  readonly feed: RouteFeed;
}

/** The descriptor of a listening server, to be inherited. Node offers none by a public name. */
function fdOf(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd?: number } };
  if (handle?.fd === undefined || handle.fd < 0)
    throw new Error('this Node does not tell descriptors of sockets');
  return handle.fd;
}

/**
 * The data plane whose TLS side is HAProxy, for who wants no C of ours on the Internet: it reads the server name and passes the
 * bytes on, unopened. This class writes its configuration, gives it listening sockets, tells it changes of routes by its admin
 * socket, in a directory of ours that nobody else may enter, reads its counters, and starts it again should it fall.
 */
export class HaproxyDataPlane implements DataPlane {
  readonly #options: HaproxyPlaneOptions;
  readonly #routes = new RouteTable();
  readonly #http: HttpSide;
  readonly #stopped = new AbortController();
  #directory: string | undefined;
  #run: Run | undefined;
  #restarting: Promise<void> | undefined;
  #before: TlsCounts = newTlsCounts();
  #now: TlsCounts = newTlsCounts();
  #counting: Promise<TlsCounts> | undefined;
  #untold = 0;

  constructor(options: HaproxyPlaneOptions) {
    this.#options = guarded(options);
    this.#http = new HttpSide(this.#options, this.#routes);
  }

  /** Of HAProxy, while it runs. */
  get pid(): number | undefined {
    return this.#run?.process.pid;
  }

  /** Where its configuration, routes and admin socket are, while it runs. */
  get directory(): string | undefined {
    return this.#directory;
  }

  async listen(): Promise<ListenPorts> {
    try {
      this.#directory = await mkdtemp(join(tmpdir(), 'skerry-haproxy-'));
      const http = await this.#http.listen(this.#options.sharePort ? 'shared' : 'alone');
      const https = await this.#start(this.#options.httpsPort);
      return { http, https, noQuic: 'HAProxy cannot pass it on without opening it' };
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Starts HAProxy with the routes of now; resolves with its port when it takes orders. */
  async #start(wanted: number): Promise<number> {
    const { hosts, sharePort, program } = this.#options;
    const directory = this.#directory!;
    const [configFile, routesFile, adminSocket] = ['haproxy.cfg', 'routes.map', 'admin.sock'].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    const book = new RouteBook(routesFile, this.#options.upstreamHttpsPort);
    const admin = new AdminSocket(adminSocket);
    const feed = new RouteFeed(admin, book, (error) => this.#lostRoutes(run, error));
    const { map, servers } = book.begin(this.#routes.routes());
    await writeFile(routesFile, map, { mode: 0o600 });
    await writeFile(configFile, this.#config(adminSocket, routesFile, servers), { mode: 0o600 });
    await rm(adminSocket, { force: true });
    // Whoever comes before HAProxy has them is turned away.
    const listeners = hosts.map(() => createServer((socket) => socket.destroy()));
    const port = await openTogether(listeners, hosts, wanted, sharePort ? 'shared' : 'alone');
    let process: HaproxyProcess;
    try {
      this.#stopped.signal.throwIfAborted();
      const fds = listeners.map(fdOf);
      process = new HaproxyProcess({ program, configFile, fds, onLine: (line) => this.#hear(line) });
    } finally {
      for (const server of listeners) void shut({ server, connections: new Set() });
    }
    const run: Run = { process, admin, feed };
    this.#run = run;
    // What changed since its routes were written.
    feed.replace(this.#routes.routes());
    try {
      await process.ready(admin);
    } catch (error) {
      this.#run = undefined;
      await process.stop();
      throw error;
    }
    feed.open();
    void process.ended.then(() => this.#ended(run, port));
    return port;
  }

  #config(adminSocket: string, routesFile: string, headerServers: ReturnType<RouteBook['begin']>['servers']) {
    const { hosts, upstreamHttpsPort, limits, access } = this.#options;
    return haproxyConfig({
      adminSocket,
      routesFile,
      listenFds: inheritedFds(hosts.length),
      instancePort: upstreamHttpsPort,
      limits: { ...DEFAULT_LIMITS, ...limits },
      headerServers,
      logsAll: access !== undefined,
    });
  }

  #hear(line: string): void {
    const told = readLogLine(line);
    if (!told) return;
    const { record, failure } = told;
    const route = record.hostname === null ? undefined : this.#routes.get(record.hostname);
    if (failure && route !== undefined) this.#routes.noteAttempt(route, failure);
    const { access, onRefused } = this.#options;
    if (record.outcome !== null && isTlsRefusal(record.outcome))
      onRefused?.({
        network: networkOf(record.clientAddress),
        count: 1,
        protocol: 'tls',
        reason: record.outcome,
      });
    if (!access || ++this.#untold < access.every) return;
    this.#untold = 0;
    access.tell(record);
  }

  /** Nobody knows what routes it has: another one gets them all. */
  #lostRoutes(run: Run, error: Error): void {
    if (this.#stopped.signal.aborted || this.#run !== run) return;
    this.#options.onTrouble({ err: error }, 'HAProxy did not take a change of routes; restarting it');
    void run.process.stop();
  }

  #ended(run: Run, port: number): void {
    if (this.#run !== run) return;
    this.#run = undefined;
    this.#before = addCounts(this.#before, this.#now);
    this.#now = newTlsCounts();
    if (this.#stopped.signal.aborted) return;
    this.#options.onTrouble({ exit: run.process.exit }, 'HAProxy exited; restarting it');
    this.#restarting = startAgain(
      async () => {
        await this.#start(port);
        this.#options.onRecovery?.('HAProxy runs again');
      },
      this.#stopped.signal,
      (error) => this.#options.onTrouble({ err: error }, 'HAProxy did not start; trying again'),
    );
  }

  replaceTable(routes: Iterable<Route>): void {
    this.#routes.replace(routes);
    this.#run?.feed.replace(this.#routes.routes());
  }

  applyChanges(changes: Iterable<RouteChange>): void {
    const all = [...changes];
    this.#routes.apply(all);
    this.#run?.feed.apply(all);
  }

  /** Of after all changes of routes so far. */
  async stats(): Promise<DataPlaneStats> {
    this.#counting ??= this.#count().finally(() => {
      this.#counting = undefined;
    });
    return {
      tls: await this.#counting,
      routes: this.#routes.size,
      quic: noQuicCounts(),
      httpOpen: this.#http.open,
      httpYielded: this.#http.yielded,
      httpRequests: this.#http.requests,
      httpCounts: this.#http.counts,
      httpRefusals: this.#http.refusals,
      httpStalledBytes: this.#http.stalledBytes,
    };
  }

  /** Where HAProxy does not answer, what it last said. */
  async #count(): Promise<TlsCounts> {
    const run = this.#run;
    if (run)
      try {
        await run.feed.settled();
        const [stat, outcomes] = await Promise.all(COUNTERS.map((command) => run.admin.askFirst(command)));
        if (this.#run === run) this.#now = readCounts(stat!, outcomes!);
      } catch (error) {
        this.#options.onTrouble({ err: error }, 'HAProxy does not tell its counters');
      }
    return addCounts(this.#before, this.#now);
  }

  async findAttempts(hostname: string): Promise<Attempts | undefined> {
    if (this.#routes.get(hostname) === undefined) return undefined;
    const run = this.#run;
    await run?.feed.settled();
    const question = `show table ${TABLES.names} key ${hostname}`;
    const answer = isHostname(hostname) ? await run?.admin.ask(question).catch(() => '') : '';
    const tls = readName(answer ?? '');
    const met = this.#routes.attempts(hostname);
    const http = this.#routes.traffic(hostname);
    return {
      connectedAt: Math.max(tls.connectedAt, met.connectedAt ?? 0) || null,
      failedAt: met.failedAt,
      failure: met.failure,
      open: tls.open,
      traffic: {
        since: earliest(tls.since || null, http.since),
        connections: tls.connections,
        bytesToInstance: tls.bytesToInstance,
        bytesToClient: tls.bytesToClient,
        requests: http.requests,
      },
    };
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#stopped.abort();
    await Promise.all([this.#run?.process.drain(timeoutMs), this.#http.drain(timeoutMs)]);
    await this.close();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#restarting;
    await Promise.all([this.#run?.process.stop(), this.#http.close()]);
    if (this.#directory) await rm(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
