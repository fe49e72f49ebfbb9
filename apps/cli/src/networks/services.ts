import { call } from '@skerry/client/call';
import { type InfoView, type NetworkService, NODE_API } from '@skerry/protocol/api/core/node';
import { AppError } from '@skerry/protocol/forms';
import { beside } from '../network/beside.ts';
import { ASIDE } from '../network/gateway.ts';
import type { ChosenNetwork } from './choose.ts';
import { isServiceUrl } from './service-url.ts';

/** Where the services of a network are: never where those of another one would be. */

const USUAL_CORE_PORT = '4024';
const USUAL_PORTS: Readonly<Record<NetworkService | 'compute', number>> = {
  gateway: 8081,
  scheduler: 4030,
  credit: 4032,
  status: 4031,
  compute: 4020,
};
const OPTIONS: Readonly<Record<NetworkService, string>> = {
  gateway: '--gateway or SKERRY_GATEWAY_URL',
  scheduler: '--scheduler or SKERRY_SCHEDULER_URL',
  credit: '--credit or SKERRY_CREDIT_URL',
  status: '--status or SKERRY_STATUS_URL',
};

const LOOPBACK = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
export const isLoopback = (url: string): boolean => URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);

/** Whether a word of the network can be followed: from elsewhere, "localhost" would lead to somebody's own machine. */
export const isUsable = (url: string, coreUrl: string): boolean =>
  isServiceUrl(url) && (isLoopback(coreUrl) || !isLoopback(url));

/** Beside a core node at its usual port the others are at theirs. */
export const usualUrl = (coreUrl: string, service: NetworkService | 'compute'): string | undefined =>
  new URL(coreUrl).port === USUAL_CORE_PORT ? beside(coreUrl, USUAL_PORTS[service]) : undefined;

export type Told = NonNullable<InfoView['services']>;
export type ServiceSource = 'given' | 'network' | 'core' | 'usual';

export interface FoundService {
  readonly url: string;
  readonly from: ServiceSource;
}

/** Pure. @param told what the core node says; undefined where it does not answer */
export function findService(
  { network, given }: Pick<ChosenNetwork, 'network' | 'given'>,
  service: NetworkService,
  told: Told | undefined,
): FoundService | undefined {
  const { core } = network;
  const said = told?.[service];
  const usual = usualUrl(core, service);
  const known: readonly [string | undefined, ServiceSource][] = [
    [given[service], 'given'],
    [network[service], 'network'],
    [said !== undefined && isUsable(said, core) ? said.replace(/\/+$/, '') : undefined, 'core'],
    [usual, 'usual'],
  ];
  const [url, from] = known.find(([one]) => one !== undefined) ?? [];
  return url === undefined || from === undefined ? undefined : { url, from };
}

/** What a core node says of its network's services. */
export async function askServices(coreUrl: string): Promise<Told> {
  // Nodes of older versions say nothing.
  return (await call(coreUrl, NODE_API.getInfo, {}, ASIDE)).services ?? {};
}

/**
 * Asks the core node at most once, and only where nothing nearer says it.
 * @throws AppError SERVICE_UNKNOWN, UPSTREAM_UNAVAILABLE (the core node, where only it could say)
 */
export function createServiceFinder(
  chosen: Pick<ChosenNetwork, 'network' | 'given'>,
): (service: NetworkService) => Promise<string> {
  let asked: Promise<Told> | undefined;
  return async (service) => {
    const near = chosen.given[service] ?? chosen.network[service];
    if (near !== undefined) return near;
    const { core } = chosen.network;
    asked ??= askServices(core);
    const told = await asked.catch((error: unknown) => {
      if (usualUrl(core, service) === undefined) throw error;
      return undefined;
    });
    const found = findService(chosen, service, told);
    if (found !== undefined) return found.url;
    throw new AppError('SERVICE_UNKNOWN', `${core} does not say where the ${service} of its network is`, {
      details: {
        hint: `name it with ${OPTIONS[service]}; its operator can publish it with SKERRY_CORE_SERVICES`,
      },
    });
  };
}

/** The scheduler of a core node's network. @param named by whoever asks. Throws as a service finder does. */
export const findScheduler = (coreUrl: string, named: string | undefined): Promise<string> =>
  createServiceFinder({ network: { core: coreUrl }, given: named === undefined ? {} : { scheduler: named } })(
    'scheduler',
  );
