import { call, callDated, readAnnouncedNodes } from '@skerry/client';
import { type HealthView, NODE_API } from '@skerry/protocol/api/core/node';
import { GATEWAY_API, type GatewayStatus } from '@skerry/protocol/api/gateway';
import { SCHEDULER_API, type SchedulerStatusView } from '@skerry/protocol/api/scheduler';
import { STATUS_API } from '@skerry/protocol/api/status';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { describeFailure } from '../failure.ts';
import { tellBeats } from '../networks/choose.ts';
import { readRestarts } from '../networks/local.ts';
import { isUsable, usualUrl } from '../networks/services.ts';
import { plainText, renderTime } from '../output/text.ts';
import { describeAbility, describeCredit, getCreditStatus, getNodeConfig } from './ability.ts';
import { ASIDE } from './gateway.ts';

export interface StatusOptions {
  readonly scheduler?: string;
  readonly compute?: string;
  readonly credit?: string;
  readonly status?: string;
}

export interface ServiceStatus {
  readonly service: string;
  /** Empty where nobody knows. */
  readonly url: string;
  /**
   * `degraded`, `unavailable`: it answers, and says of itself that it needs attention, or that another one should be used.
   * `unknown`: nobody says where it is, or whether the network has one.
   */
  readonly state: 'up' | 'degraded' | 'unavailable' | 'down' | 'unknown';
  readonly answers: boolean;
  readonly elapsed_ms: number | null;
  readonly detail: string;
}

type Described = Pick<ServiceStatus, 'state' | 'detail'>;

const count = (many: number, word: string) => `${many} ${word}${many === 1 ? '' : 's'}`;

/** One that says itself whether it is as it should be. */
const described = (summary: string, said: Pick<SchedulerStatusView, 'status' | 'reasons'>): Described => ({
  state: said.status === 'ok' ? 'up' : 'degraded',
  detail: [summary, ...said.reasons].join('; '),
});

function describeScheduler(said: SchedulerStatusView): Described {
  const { nodes, instances } = said;
  const placed = `${instances.placed} of ${count(instances.total, 'instance')} placed`;
  return described(`${count(nodes.total, 'node')}, ${placed}`, said);
}

/** A core node may take two seconds to find out how it is. */
const HEALTH_MS = 4_000;

/** One that answers may still refuse writes, or lack what its peers have. */
export function describeCore({ version, status, checks }: HealthView): Described {
  const troubles = Object.entries(checks)
    .filter(([, check]) => check.status !== 'ok')
    .map(([part, { reason, status: state }]) => `${part}: ${reason ?? state}`);
  return {
    state: status === 'ok' ? 'up' : status,
    detail: [`version ${version}`, ...(status === 'ok' ? [] : troubles)].join('; '),
  };
}

/** The setting without which a credit service sells nothing, as a devnet's: its line says that already. */
const NO_SALES = 'SKERRY_CREDIT_SALES_FILE';

/** A gateway reads its core node every five minutes at least (SKERRY_GATEWAY_SYNC_INTERVAL_MS): twice as long is no coincidence. */
const UNHEARD_SECONDS = 600;

/**
 * One whose core node is away routes as it did last: what changed since, it does not know.
 * @param nowSeconds by the clock of the gateway, by which it heard
 */
export function describeGateway(
  { route_count, instance_count, domain, last_sync_time: heard }: GatewayStatus,
  nowSeconds: number,
): Described {
  const detail = `${count(route_count, 'route')} of ${count(instance_count, 'instance')}, ${domain}`;
  if (nowSeconds - heard < UNHEARD_SECONDS) return { state: 'up', detail };
  const since = heard === 0 ? 'yet' : `since ${renderTime(heard)}`;
  return { state: 'degraded', detail: `${detail}; it has heard nothing from its core node ${since}` };
}

/** What each service says of itself, in one line. Throws where it does not answer, or answers something else. */
const DESCRIBE: Readonly<Record<string, (url: string) => Promise<string | Described>>> = {
  core: async (url) => describeCore(await call(url, NODE_API.getApiHealth, {}, { timeoutMs: HEALTH_MS })),
  scheduler: async (url) => describeScheduler(await call(url, SCHEDULER_API.getSchedulerStatus, {}, ASIDE)),
  compute: async (url) => describeAbility(await getNodeConfig(url)),
  gateway: async (url) => {
    const { answer, atMs = Date.now() } = await callDated(url, GATEWAY_API.getGatewayStatus, {}, ASIDE);
    return describeGateway(answer, atMs / 1000);
  },
  credit: async (url) => {
    const said = await getCreditStatus(url);
    const troubles = said.reasons.filter((one) => !one.includes(NO_SALES));
    const detail = [describeCredit(said), ...troubles].join('; ');
    return { state: troubles.length === 0 ? 'up' : 'degraded', detail };
  },
  status: async (url) => {
    const said = await call(url, STATUS_API.getStatus, {}, ASIDE);
    const { online, total } = said.services;
    return described(`${online} of ${count(total, 'service')} up`, said);
  },
};

/** @param find throws what is told instead, where nobody knows the address @param onFailure is told why it does not answer */
async function ask(
  service: string,
  find: () => string | Promise<string>,
  onFailure: (error: unknown) => void = () => {},
): Promise<ServiceStatus> {
  const startedMs = performance.now();
  let url = '';
  try {
    url = await find();
    const said = await DESCRIBE[service]!(url);
    const elapsedMs = Math.round(performance.now() - startedMs);
    const { state, detail } = typeof said === 'string' ? { state: 'up' as const, detail: said } : said;
    return { service, url, state, answers: true, elapsed_ms: elapsedMs, detail };
  } catch (error) {
    onFailure(error);
    const { message, code } = error as AppError;
    const isFound = url !== '';
    const detail = isFound || code === 'SERVICE_UNKNOWN' ? message : `nobody says where it is: ${message}`;
    return { service, url, state: isFound ? 'down' : 'unknown', answers: false, elapsed_ms: null, detail };
  }
}

/** Of compute nodes that announced themselves, those that are asked. */
const NODES_ASKED = 16;

/** Nodes that announced themselves on this network, newest first; what is no address that can be asked from here is left out. */
async function findComputeNodes({ reader, coreUrl }: Context): Promise<string[]> {
  const nodes = await readAnnouncedNodes(reader, AbortSignal.timeout(ASIDE.timeoutMs));
  return nodes
    .map(({ url }) => url)
    .filter((url) => isUsable(url, coreUrl))
    .slice(0, NODES_ASKED);
}

/**
 * One that was asked at its usual place, where nobody says that there is one.
 * @param asked what came of it
 */
export const describeGuess = (asked: ServiceStatus): ServiceStatus =>
  asked.state !== 'down'
    ? asked
    : {
        ...asked,
        ...{ url: '', state: 'unknown' },
        detail: `nobody says that there is one, and none answers at ${asked.url}`,
      };

/** The compute nodes of the network as one row: up where one of them answers. */
async function askCompute(context: Context, given: string | undefined): Promise<ServiceStatus> {
  const named = given ?? context.network.given.compute;
  const finding = named === undefined ? findComputeNodes(context) : Promise.resolve([named]);
  const urls = await finding.catch(() => []);
  const [only] = urls;
  if (only === undefined)
    return describeGuess(
      await ask('compute', async () => {
        const url = usualUrl(context.coreUrl, 'compute');
        if (url !== undefined) return url;
        // Whether there is none, or nobody could be asked.
        await finding;
        throw new AppError('SERVICE_UNKNOWN', 'no compute node announced itself');
      }),
    );
  if (urls.length === 1) return ask('compute', () => only);
  const nodes = await Promise.all(urls.map((url) => ask('compute', () => url)));
  const answering = nodes.filter(({ answers }) => answers);
  return {
    ...(answering[0] ?? nodes[0]!),
    detail: `${answering.length} of ${count(nodes.length, 'node')} answer`,
  };
}

interface RestartsView {
  readonly daemon: string;
  readonly count: number;
  readonly last_at: string;
}

/** Of the network that "skerry up" runs here: a daemon that ends again and again answers in between. */
async function listRestarts({ paths, coreUrl }: Context): Promise<RestartsView[]> {
  const restarts = Object.entries(await readRestarts(paths.data, coreUrl));
  return restarts.map(([daemon, { count: times, lastMs }]) => ({
    ...{ daemon, count: times },
    last_at: new Date(lastMs).toISOString(),
  }));
}

export const renderRestarts = ({ daemon, count: times, last_at: lastAt }: RestartsView): string =>
  `${daemon} was restarted ${times === 1 ? 'once' : `${times} times`} since the network started, last at ${renderTime(Date.parse(lastAt) / 1000)}; logs/skerry.log says how it ended, its own log what came before`;

const COLOURS = {
  up: 'green',
  degraded: 'yellow',
  unavailable: 'red',
  down: 'red',
  unknown: 'yellow',
} as const;

/** Exit code 5 where any of them that is known does not answer, or says that it cannot be used. */
export async function showStatus(context: Context, options: StatusOptions): Promise<number> {
  const { coreUrl, findService, output } = context;
  let hint: string | undefined;
  const services = await Promise.all([
    ask(
      'core',
      () => coreUrl,
      (error) => {
        ({ hint } = describeFailure(error));
      },
    ),
    ask('scheduler', () => options.scheduler ?? findService('scheduler')),
    askCompute(context, options.compute),
    ask('gateway', () => findService('gateway')),
    ask('credit', () => options.credit ?? findService('credit')),
    ask('status', () => options.status ?? findService('status')),
  ]);
  const rows = services.map(({ service, url, state, elapsed_ms: elapsedMs, detail }) => [
    service,
    output.paint(COLOURS[state], state),
    url,
    elapsedMs === null ? '' : `${elapsedMs} ms`,
    plainText(detail),
  ]);
  const restarts = await listRestarts(context);
  output.result(
    { services, restarts },
    output.table(['SERVICE', 'STATE', 'URL', 'ANSWER', 'DETAIL'], rows, 'no services'),
  );
  for (const one of restarts) output.note(renderRestarts(one));
  if (hint !== undefined) output.note(hint);
  tellBeats(context.network, output);
  return services.some(({ state }) => state === 'down' || state === 'unavailable')
    ? EXIT.unavailable
    : EXIT.ok;
}
