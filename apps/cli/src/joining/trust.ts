import { settingText } from '@skerry/kit';
import type { InfoView, TrustView } from '@skerry/protocol/api/core/node';
import { isLoopback } from '../networks/services.ts';
import { trustFields } from '../nodes/trust.ts';

/** Whom a core node that joins believes: what the network says, once its operator has seen it. */

const VARIABLES = {
  schedulers: 'SKERRY_CORE_SCHEDULERS',
  scoring_publishers: 'SKERRY_CORE_SCORING_PUBLISHERS',
  credit_publishers: 'SKERRY_CORE_CREDIT_PUBLISHERS',
  credit_enforcement: 'SKERRY_CORE_CREDIT_ENFORCEMENT',
} as const satisfies Partial<Record<keyof TrustView, string>>;

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/**
 * The lists as settings. What the network has not set either is left to be learned; keys for random values always are, since every peer
 * vouches for its own. Pure.
 */
export function trustVariables(trust: TrustView): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(VARIABLES).flatMap(([name, variable]) => {
      const { value, source } = trust[name as keyof typeof VARIABLES];
      if (source === 'unset') return [];
      if (typeof value === 'boolean') return [[variable, settingText(value)]];
      const addresses = value.filter((one) => ADDRESS.test(one));
      return [[variable, addresses.length === 0 ? 'none' : addresses.join(',')]];
    }),
  );
}

/**
 * The network's services as the setting of a core node that joins, so that its clients find them, too. What is set already stays; what
 * only the other core node's own machine could reach is left out. Pure. @param given what is set already
 */
export function servicesVariables(
  { services }: Pick<InfoView, 'services'>,
  given: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const public_ = Object.entries(services ?? {}).filter(([, url]) => url !== undefined && !isLoopback(url));
  if (given.SKERRY_CORE_SERVICES !== undefined || public_.length === 0) return {};
  return { SKERRY_CORE_SERVICES: public_.map(([name, url]) => `${name}=${url}`).join(',') };
}

/** What is shown before it is believed. */
export function describeTrust({ trust }: InfoView, coreUrl: string): string {
  const lines = trustFields(trust).map(([name, text]) => `  ${name}: ${text}`);
  const warning = coreUrl.startsWith('https:')
    ? []
    : ['  (by plain http: somebody on the way could have changed it)'];
  return [`This network says, by ${coreUrl}, whom to trust:`, ...lines, ...warning].join('\n');
}
