import { call } from '@skerry/client/call';
import {
  type DomainRecord,
  GATEWAY_API,
  type GatewayStatus,
  type WhyRecord,
} from '@skerry/protocol/api/gateway';

const LOOKUP_TIMEOUT_MS = 10_000;
/** Of what is only told beside something else. */
export const ASIDE = { timeoutMs: 2_000 } as const;
const STANDARD_PORT = { http: 80, https: 443 } as const;

export const lookupDomain = (gatewayUrl: string, subdomain: string): Promise<DomainRecord> =>
  call(gatewayUrl, GATEWAY_API.findDomain, { params: { subdomain } }, { timeoutMs: LOOKUP_TIMEOUT_MS });

export const explainDomain = (gatewayUrl: string, subject: string): Promise<WhyRecord> =>
  call(gatewayUrl, GATEWAY_API.explainDomain, { params: { subject } }, { timeoutMs: LOOKUP_TIMEOUT_MS });

const getGatewayStatus = (gatewayUrl: string): Promise<GatewayStatus> =>
  call(gatewayUrl, GATEWAY_API.getGatewayStatus, {}, ASIDE);

/** The gateway's status, or undefined where none answers: then host names are told without their domain. */
export async function findGatewayStatus(findUrl: () => Promise<string>): Promise<GatewayStatus | undefined> {
  try {
    return await getGatewayStatus(await findUrl());
  } catch {
    return undefined;
  }
}

export interface HostAddresses {
  readonly hostname: string;
  readonly https_url?: string;
  readonly http_url?: string;
}

function urlOf(scheme: 'http' | 'https', host: string, port: number | undefined): string {
  return `${scheme}://${host}${port === undefined || port === STANDARD_PORT[scheme] ? '' : `:${port}`}/`;
}

/** Where an instance is reached by name. */
export function hostAddresses(
  subdomain: string,
  gateway: Pick<GatewayStatus, 'domain' | 'http_port' | 'https_port'> | undefined,
): HostAddresses {
  if (gateway === undefined) return { hostname: subdomain };
  const hostname = `${subdomain}.${gateway.domain}`;
  return {
    hostname,
    https_url: urlOf('https', hostname, gateway.https_port),
    http_url: urlOf('http', hostname, gateway.http_port),
  };
}
