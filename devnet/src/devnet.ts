import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createSigner } from '@skerry/client';
import { type Lock, loadOrCreateKeyFile, makeDirectory } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type DevnetChain, startChain } from './chain/chain.ts';
import { type Daemon, type DaemonEvent, type DaemonOptions, superviseDaemon } from './daemon.ts';
import { type OwnRecord, recordOf, warningOf } from './event-record.ts';
import { lockDataDir } from './locks.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import {
  COMMANDS,
  chooseCorePorts,
  type DaemonName,
  type DevnetUrls,
  DOORS,
  daemonDataDir,
  daemonKeyFile,
  kindOf,
  nodeFlagsOf,
  type Plan,
  SYSTEMS,
  settingsOf,
  startOrderOf,
  systemsFile,
} from './plan.ts';
import { checkPorts, type DevnetPorts } from './ports.ts';
import type { RestartLimits } from './restart.ts';

export interface DevnetOptions {
  /** Node's executable, and the arguments that run a daemon when its name is appended. */
  readonly command: readonly [string, ...string[]];
  /** What the daemons see, beside their settings. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
  readonly ports: DevnetPorts;
  /** How long the monitor's hour is; what its own setting says if left out. */
  readonly hourSeconds?: number | undefined;
  /** Whether messages are confirmed on a chain of the devnet's own, where anvil is installed. */
  readonly chain?: boolean;
  /** Core nodes, each with a database of its own; 1 where left out. */
  readonly cores?: number;
  /** A line that a daemon wrote, or the devnet's own of the chain. */
  readonly onLine?: (name: DaemonName, line: string) => void;
  readonly onEvent?: (name: DaemonName, event: DaemonEvent) => void;
  /** Told once when daemons of a killed devnet are still stopping. */
  readonly onWait?: () => void;
  /** Gives up starting. */
  readonly signal?: AbortSignal;
  readonly limits?: RestartLimits;
}

export interface Devnet extends AsyncDisposable {
  /** Where each door is; of daemons that could not be started there is none. */
  readonly urls: Partial<DevnetUrls>;
  /** Of every core node that runs, the first one first. */
  readonly coreUrls: readonly string[];
  readonly processes: ReadonlyMap<DaemonName, Daemon>;
  /** There is none where anvil is not installed or could not be started: messages are not confirmed then. */
  readonly chain: DevnetChain | undefined;
  /** Why daemons that do not serve do not; one that is tried on leaves this list when it serves. */
  readonly failures: ReadonlyMap<DaemonName, AppError>;
  /** Ends everything at once, without the daemons' own stop. */
  kill(): void;
}

type SettingsOf = NonNullable<DaemonOptions['settings']>;

/** The variables of the daemons themselves win over whatever the person's shell has. */
function createDaemon(
  name: DaemonName,
  options: DevnetOptions,
  settings: SettingsOf,
  lock: Lock,
  log: LogFile,
  onEvent: (event: DaemonEvent) => void,
): Daemon {
  const [file, ...args] = options.command;
  return superviseDaemon({
    name,
    lockFd: lock.fd,
    command: () => ({
      file,
      args: [...nodeFlagsOf(kindOf(name)), ...args, ...(COMMANDS[kindOf(name)] ?? [kindOf(name)])],
      environment: options.environment,
    }),
    settings,
    onLine: (line) => {
      log.write(line);
      options.onLine?.(name, line);
    },
    onEvent: (event) => {
      onEvent(event);
      options.onEvent?.(name, event);
    },
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
}

function urlsOf(processes: ReadonlyMap<DaemonName, Daemon>): Partial<DevnetUrls> {
  const entries = [...processes].flatMap(([name, { urls }]) =>
    kindOf(name) === name ? (urls ?? []).map((url, index) => [DOORS[name][index]!, url] as const) : [],
  );
  return Object.fromEntries(entries);
}

/** Resolves when every daemon of the row serves or is not waited for any more. */
async function startRow(
  row: readonly DaemonName[],
  processes: ReadonlyMap<DaemonName, Daemon>,
  failures: Map<DaemonName, AppError>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new AppError('SHUTTING_DOWN', 'stopped during start-up'));
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    if (signal?.aborted) onAbort();
    const all = row.map(async (name) => {
      try {
        const daemon = processes.get(name)!;
        daemon.begin();
        await daemon.ready;
      } catch (error) {
        failures.set(name, error as AppError);
      }
    });
    await Promise.race([Promise.all(all), aborted.promise]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

async function tryChain({ dataDir, onLine }: DevnetOptions, note: (record: OwnRecord) => void) {
  const tell = (line: string) => {
    note(warningOf(line));
    onLine?.('core', line);
  };
  try {
    return await startChain(join(dataDir, 'chain'), tell);
  } catch (error) {
    tell(`messages are not confirmed: the chain did not start: ${(error as Error).message}`);
    return undefined;
  }
}

/** Keeps what the devnet itself has to say beside the logs of its daemons: the terminal may be gone. */
function openOwnLog(logDir: string): Disposable & { note(record: OwnRecord): void } {
  const name = 'skerry';
  const log = openLogFile(join(logDir, `${name}.log`));
  return {
    note: (record) => log.write(JSON.stringify({ ...record, time: Date.now(), name })),
    [Symbol.dispose]: () => log[Symbol.dispose](),
  };
}

/**
 * The key that a daemon of this network is known by. Throws INVALID_CONFIG where it is gone: what it signed would be nobody's. The core
 * node's directory is made after all keys, and a daemon that is new with this release has no directory yet.
 */
async function loadDaemonKey(dataDir: string, name: DaemonName): Promise<string> {
  const file = daemonKeyFile(dataDir, name);
  const hasRun = existsSync(daemonDataDir(dataDir, 'core')) && existsSync(dirname(file));
  if (hasRun && !existsSync(file))
    throw new AppError(
      'INVALID_CONFIG',
      `${file} is missing, and this network knows its ${name} by it. Restore the key from a backup (skerry restore), or start a new network in an empty directory`,
      { details: { missing: file } },
    );
  return loadOrCreateKeyFile(file);
}

async function makePlan(
  options: DevnetOptions,
  corePorts: readonly number[],
  chain: Plan['chain'],
): Promise<Plan> {
  const { dataDir, ports, environment, hourSeconds } = options;
  const addressOf = async (name: DaemonName) => createSigner(await loadDaemonKey(dataDir, name)).address;
  return {
    ...{ dataDir, ports, corePorts, environment, hourSeconds, chain },
    schedulerAddress: await addressOf('scheduler'),
    computeAddress: await addressOf('compute'),
    creditAddress: await addressOf('credit'),
    monitorAddress: await addressOf('monitor'),
  };
}

/**
 * Starts a whole network as child processes of this one and keeps it running: the core node first, then all others.
 * A daemon that cannot be started is left out until it can; without a core node there is nothing. Disposing stops them in reverse.
 *
 * @throws AppError PORT_IN_USE, DEVNET_RUNNING, DAEMON_FAILED (the core node), INVALID_CONFIG (the core node, a key that is gone),
 *   SHUTTING_DOWN (the signal)
 */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { dataDir, ports, cores = 1 } = options;
  await using stack = new AsyncDisposableStack();
  const logDir = join(dataDir, 'logs');
  await makeDirectory(logDir);
  const locks = stack.use(await lockDataDir(dataDir, options.onWait ?? (() => {})));
  const corePorts = await chooseCorePorts(ports.core, cores);
  await checkPorts(ports, corePorts);
  const order = startOrderOf(cores);
  const processes = new Map<DaemonName, Daemon>();
  const failures = new Map<DaemonName, AppError>();
  const logs = new Map(
    order.flat().map((name) => [name, stack.use(openLogFile(join(logDir, `${name}.log`)))] as const),
  );
  const own = stack.use(openOwnLog(logDir));
  const starting = options.chain === true ? tryChain(options, own.note) : Promise.resolve(undefined);
  stack.defer(async () => (await starting)?.[Symbol.asyncDispose]());
  // One row after the other, the last first; those of one row together.
  stack.defer(async () => {
    for (const row of order.toReversed()) await Promise.all(row.map((name) => processes.get(name)?.stop()));
  });
  // All load their code at once, since that is most of a start's work; each begins when its row does.
  const told: { plan?: Plan } = {};
  for (const name of order.flat()) {
    const settings: SettingsOf = (urls) => settingsOf(name, told.plan!, urlsOf(processes), urls);
    const onEvent = (event: DaemonEvent) => {
      if (event.kind === 'ready') failures.delete(name);
      own.note(recordOf(name, event));
    };
    processes.set(name, createDaemon(name, options, settings, locks.daemons, logs.get(name)!, onEvent));
  }
  const chain = await starting;
  told.plan = await makePlan(options, corePorts, chain);
  await writeFile(systemsFile(dataDir), SYSTEMS);
  for (const row of order) {
    for (const name of row) await makeDirectory(daemonDataDir(dataDir, name));
    await startRow(row, processes, failures, options.signal);
    const failed = failures.get('core');
    if (failed !== undefined) throw failed;
  }
  const owned = stack.move();
  return {
    get urls() {
      return urlsOf(processes);
    },
    get coreUrls() {
      return [...processes].flatMap(([name, { urls }]) => (kindOf(name) === 'core' ? (urls ?? []) : []));
    },
    processes,
    chain,
    failures,
    kill() {
      for (const daemon of processes.values()) daemon.kill();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
