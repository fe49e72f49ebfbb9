import type { AppError } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { plainText, renderTable } from '../output/text.ts';
import { type ComputeConfigView, type CreditStatusView, describeAbility, describeCredit } from './ability.ts';
import { beside } from './beside.ts';
import { probe } from './gateway.ts';

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

const count = (many: unknown, word: string) => `${many} ${word}${many === 1 ? '' : 's'}`;

interface SchedulerView {
  readonly reasons: readonly string[];
  readonly nodes: { readonly total: number };
  readonly instances: { readonly total: number; readonly placed: number };
}

function describeScheduler({ reasons, nodes, instances }: SchedulerView): string {
  const placed = `${instances.placed} of ${count(instances.total, 'instance')} placed`;
  return [`${count(nodes.total, 'node')}, ${placed}`, ...reasons].join('; ');
}

interface StatusView {
  readonly reasons: readonly string[];
  readonly services: { readonly total: number; readonly online: number };
}

const describeStatus = ({ reasons, services }: StatusView) =>
  [`${services.online} of ${count(services.total, 'service')} up`, ...reasons].join('; ');

function describe(service: string, body: Record<string, unknown>): string {
  if (service === 'gateway')
    return `${count(body.route_count, 'route')} of ${count(body.instance_count, 'instance')}, ${body.domain}`;
  if (service === 'scheduler') return describeScheduler(body as unknown as SchedulerView);
  if (service === 'credit') return describeCredit(body as CreditStatusView);
  if (service === 'compute') return describeAbility(body as ComputeConfigView);
  if (service === 'status') return describeStatus(body as unknown as StatusView);
  return typeof body.version === 'string' ? `version ${body.version}` : '';
}

async function ask(service: string, url: string, path: string): Promise<ServiceStatus> {
  try {
    const { body, elapsedMs } = await probe(`${url}${path}`);
    return { service, url, answers: true, elapsed_ms: elapsedMs, detail: describe(service, body) };
  } catch (error) {
    const { message } = error as AppError;
    return { service, url, answers: false, elapsed_ms: null, detail: message };
  }
}

/** Exit code 5 where any of them does not answer. */
export async function showStatus(context: Context, options: StatusOptions): Promise<number> {
  const { coreUrl, gatewayUrl, output } = context;
  const services = await Promise.all([
    ask('core', coreUrl, '/api/v0/info/public.json'),
    ask('scheduler', options.scheduler ?? beside(coreUrl, SCHEDULER_PORT), '/status'),
    ask('compute', options.compute ?? beside(coreUrl, COMPUTE_PORT), '/status/config'),
    ask('gateway', gatewayUrl, '/api/status'),
    ask('credit', options.credit ?? beside(coreUrl, CREDIT_PORT), '/status'),
    ask('status', options.status ?? beside(coreUrl, STATUS_PORT), '/status'),
  ]);
  const rows = services.map(({ service, url, answers, elapsed_ms: elapsedMs, detail }) => [
    service,
    answers ? output.paint('green', 'up') : output.paint('red', 'down'),
    url,
    answers ? `${elapsedMs} ms` : '',
    plainText(detail),
  ]);
  output.result({ services }, renderTable(['SERVICE', 'STATE', 'URL', 'ANSWER', ''], rows));
  return services.every(({ answers }) => answers) ? EXIT.ok : EXIT.unavailable;
}
