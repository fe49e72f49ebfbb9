import { findListenFailure } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** Where each door of the devnet listens; 0 lets the system choose. */
export interface DevnetPorts {
  readonly core: number;
  readonly scheduler: number;
  readonly compute: number;
  readonly credit: number;
  readonly gatewayHttp: number;
  readonly gatewayHttps: number;
  readonly gatewayApi: number;
  readonly status: number;
}

export type PortName = keyof DevnetPorts;

interface PortEntry {
  readonly fallback: number;
  /** The setting of the daemon that owns the port. */
  readonly variable: string;
  /** The option of `skerry up`. */
  readonly flag: string;
  readonly describe: string;
}

export const PORTS: Readonly<Record<PortName, PortEntry>> = {
  core: {
    fallback: 4024,
    variable: 'SKERRY_CORE_PORT',
    flag: '--core-port',
    describe: 'core node',
  },
  scheduler: {
    fallback: 4030,
    variable: 'SKERRY_SCHEDULER_PORT',
    flag: '--scheduler-port',
    describe: 'scheduler',
  },
  compute: {
    fallback: 4020,
    variable: 'SKERRY_COMPUTE_PORT',
    flag: '--compute-port',
    describe: 'compute node',
  },
  credit: {
    fallback: 4032,
    variable: 'SKERRY_CREDIT_PORT',
    flag: '--credit-port',
    describe: 'credit service',
  },
  gatewayHttp: {
    fallback: 8080,
    variable: 'SKERRY_GATEWAY_HTTP_PORT',
    flag: '--http-port',
    describe: "gateway's HTTP",
  },
  gatewayHttps: {
    fallback: 8443,
    variable: 'SKERRY_GATEWAY_HTTPS_PORT',
    flag: '--https-port',
    describe: "gateway's HTTPS",
  },
  gatewayApi: {
    fallback: 8081,
    variable: 'SKERRY_GATEWAY_API_PORT',
    flag: '--gateway-port',
    describe: "gateway's API",
  },
  status: {
    fallback: 4031,
    variable: 'SKERRY_STATUS_PORT',
    flag: '--status-port',
    describe: 'status service',
  },
};

const PORT_NAMES = Object.keys(PORTS) as PortName[];

/** What was asked for by option, else by the daemon's own variable, else the usual port. Throws INVALID_CONFIG. */
export function choosePorts(
  given: Partial<Record<PortName, number | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): DevnetPorts {
  const ports = PORT_NAMES.map((name) => {
    const { variable, fallback } = PORTS[name];
    const text = environment[variable];
    const port = given[name] ?? (text ? Number(text) : fallback);
    if (!Number.isInteger(port) || port < 0 || port > PORT_MAX)
      throw new AppError('INVALID_CONFIG', `${variable}: expected a port, not ${JSON.stringify(text)}`);
    return [name, port] as const;
  });
  return Object.fromEntries(ports) as unknown as DevnetPorts;
}

type PortProblem = 'in use' | 'not permitted' | 'above 65535';

const PROBLEMS: Readonly<Record<string, PortProblem>> = {
  EADDRINUSE: 'in use',
  EACCES: 'not permitted',
};

const PORT_MAX = 65_535;

/** Undefined where it can be listened on. */
async function findPortProblem(port: number): Promise<PortProblem | undefined> {
  if (port > PORT_MAX) return 'above 65535';
  const failure = await findListenFailure(port);
  if (failure === undefined) return undefined;
  const problem = PROBLEMS[failure.code ?? ''];
  if (problem === undefined) throw failure;
  return problem;
}

interface Wanted {
  readonly port: number;
  /** What listens on it. */
  readonly door: string;
  readonly entry: PortEntry;
}

/** @param corePorts of all core nodes, the first one first */
function listWanted(ports: DevnetPorts, corePorts: readonly number[]): Wanted[] {
  const doors = PORT_NAMES.map((name) => ({
    port: ports[name],
    door: `the ${PORTS[name].describe}`,
    entry: PORTS[name],
  }));
  const cores = corePorts
    .slice(1)
    .map((port, at) => ({ port, door: `core node ${at + 2}`, entry: PORTS.core }));
  return [...doors, ...cores].filter(({ port }) => port !== 0);
}

/** Throws PORT_IN_USE with a sentence for each port that cannot be had, before anything is started. */
export async function checkPorts(ports: DevnetPorts, corePorts: readonly number[] = []): Promise<void> {
  const seen = new Map<number, string>();
  const sentences: string[] = [];
  for (const { port, door, entry } of listWanted(ports, corePorts)) {
    const other = seen.get(port);
    seen.set(port, door);
    const how = `choose another with ${entry.flag} or ${entry.variable}`;
    if (other !== undefined) sentences.push(`${other} and ${door} both use port ${port}; ${how}`);
    else {
      const problem = await findPortProblem(port);
      if (problem !== undefined) sentences.push(`port ${port} of ${door} is ${problem}; ${how}`);
    }
  }
  if (sentences.length > 0)
    throw new AppError('PORT_IN_USE', sentences.join('\n'), { details: { problems: sentences } });
}
