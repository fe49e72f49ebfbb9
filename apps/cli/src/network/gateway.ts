import { request, requestJson } from '@skerry/client';

/** An instance domain record (specification, "Instance domain record"). */
export interface DomainRecord {
  readonly instance_hash: string;
  readonly subdomain: string;
  readonly url: string;
  readonly ipv6: string | null;
  readonly active: boolean;
}

/** Gateway status (specification, "Gateway status record"); the ports are this project's addition. */
export interface GatewayStatus {
  readonly domain: string;
  readonly instance_count: number;
  readonly route_count: number;
  readonly http_port?: number;
  readonly https_port?: number;
}

const LOOKUP_TIMEOUT_MS = 10_000;
/** Of what is only told beside something else. */
const ASIDE_TIMEOUT_MS = 2_000;
const STANDARD_PORT = { http: 80, https: 443 } as const;

export function lookupDomain(gatewayUrl: string, subdomain: string): Promise<DomainRecord> {
  return requestJson(`${gatewayUrl}/api/lookup/${encodeURIComponent(subdomain)}`, {
    timeoutMs: LOOKUP_TIMEOUT_MS,
  });
}

/** Why a name answers or does not (the gateway's API document, "WhyRecord"). */
export interface WhyRecord {
  readonly hostname: string;
  readonly instance_hash: string | null;
  readonly ipv6: string | null;
  readonly chain: readonly { readonly step: string; readonly ok: boolean | null; readonly detail: string }[];
  readonly missing: { readonly code: string; readonly message: string } | null;
}

export function explainDomain(gatewayUrl: string, name: string): Promise<WhyRecord> {
  return requestJson(`${gatewayUrl}/api/why/${encodeURIComponent(name)}`, { timeoutMs: LOOKUP_TIMEOUT_MS });
}

export function getGatewayStatus(gatewayUrl: string): Promise<GatewayStatus> {
  return requestJson(`${gatewayUrl}/api/status`, { timeoutMs: ASIDE_TIMEOUT_MS });
}

/** The gateway's status, or undefined where none answers: then host names are told without their domain. */
export async function findGatewayStatus(gatewayUrl: string): Promise<GatewayStatus | undefined> {
  try {
    return await getGatewayStatus(gatewayUrl);
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
export function hostAddresses(subdomain: string, gateway: GatewayStatus | undefined): HostAddresses {
  if (gateway === undefined) return { hostname: subdomain };
  const hostname = `${subdomain}.${gateway.domain}`;
  return {
    hostname,
    https_url: urlOf('https', hostname, gateway.https_port),
    http_url: urlOf('http', hostname, gateway.http_port),
  };
}

/** Whether something answers at all, and how fast. Throws UPSTREAM_UNAVAILABLE, or the code of its refusal. */
export async function probe(url: string): Promise<{ body: Record<string, unknown>; elapsedMs: number }> {
  const startedMs = performance.now();
  const response = await request(url, { timeoutMs: ASIDE_TIMEOUT_MS });
  const body = (await response.json()) as Record<string, unknown>;
  return { body, elapsedMs: Math.round(performance.now() - startedMs) };
}
