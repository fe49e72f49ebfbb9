import { call } from '@skerry/client';
import type { AppError } from '@skerry/protocol';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { SCHEDULER_API, type SchedulerStatusView } from '@skerry/protocol/api/scheduler';
import { STATUS_API } from '@skerry/protocol/api/status';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { plainText } from '../output/text.ts';
import { describeAbility, describeCredit, getCreditStatus, getNodeConfig } from './ability.ts';
import { beside } from './beside.ts';
import { ASIDE, getGatewayStatus } from './gateway.ts';

export interface StatusOptions {
  readonly scheduler?: string;
  readonly compute?: string;
  readonly credit?: string;
  readonly status?: string;
}

const SCHEDULER_PORT = 4030;
const COMPUTE_PORT = 4020;
const CREDIT_PORT = 4032;
const STATUS_PORT = 4031;

interface ServiceStatus {
  readonly service: string;
  readonly url: string;
  readonly answers: boolean;
  readonly elapsed_ms: number | null;
  readonly detail: string;
}

const count = (many: number, word: string) => `${many} ${word}${many === 1 ? '' : 's'}`;

function describeScheduler({ reasons, nodes, instances }: SchedulerStatusView): string {
  const placed = `${instances.placed} of ${count(instances.total, 'instance')} placed`;
  return [`${count(nodes.total, 'node')}, ${placed}`, ...reasons].join('; ');
}

/** What each service says of itself, in one line. Throws where it does not answer, or answers something else. */
const DESCRIBE: Readonly<Record<string, (url: string) => Promise<string>>> = {
  core: async (url) => `version ${(await call(url, NODE_API.getInfo, {}, ASIDE)).version}`,
  scheduler: async (url) => describeScheduler(await call(url, SCHEDULER_API.getSchedulerStatus, {}, ASIDE)),
  compute: async (url) => describeAbility(await getNodeConfig(url)),
  gateway: async (url) => {
    const { route_count, instance_count, domain } = await getGatewayStatus(url);
    return `${count(route_count, 'route')} of ${count(instance_count, 'instance')}, ${domain}`;
  },
  credit: async (url) => describeCredit(await getCreditStatus(url)),
  status: async (url) => {
    const { reasons, services } = await call(url, STATUS_API.getStatus, {}, ASIDE);
    return [`${services.online} of ${count(services.total, 'service')} up`, ...reasons].join('; ');
  },
};

async function ask(service: string, url: string): Promise<ServiceStatus> {
  const startedMs = performance.now();
  try {
    const detail = await DESCRIBE[service]!(url);
    return { service, url, answers: true, elapsed_ms: Math.round(performance.now() - startedMs), detail };
  } catch (error) {
    const { message } = error as AppError;
    return { service, url, answers: false, elapsed_ms: null, detail: message };
  }
}

/** Exit code 5 where any of them does not answer. */
export async function showStatus(context: Context, options: StatusOptions): Promise<number> {
  const { coreUrl, gatewayUrl, output } = context;
  const services = await Promise.all([
    ask('core', coreUrl),
    ask('scheduler', options.scheduler ?? beside(coreUrl, SCHEDULER_PORT)),
    ask('compute', options.compute ?? beside(coreUrl, COMPUTE_PORT)),
    ask('gateway', gatewayUrl),
    ask('credit', options.credit ?? beside(coreUrl, CREDIT_PORT)),
    ask('status', options.status ?? beside(coreUrl, STATUS_PORT)),
  ]);
  const rows = services.map(({ service, url, answers, elapsed_ms: elapsedMs, detail }) => [
    service,
    answers ? output.paint('green', 'up') : output.paint('red', 'down'),
    url,
    answers ? `${elapsedMs} ms` : '',
    plainText(detail),
  ]);
  output.result(
    { services },
    output.table(['SERVICE', 'STATE', 'URL', 'ANSWER', 'DETAIL'], rows, 'no services'),
  );
  return services.every(({ answers }) => answers) ? EXIT.ok : EXIT.unavailable;
}
