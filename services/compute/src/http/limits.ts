import { lookup } from 'node:dns/promises';
import type { RateLimitOptions } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';

/** Who may ask how often. The core node that this one follows sends its callers' runs: it is found by its name at the start. */
export async function readLimits(config: ComputeConfig): Promise<RateLimitOptions> {
  const host = new URL(config.coreUrl).hostname.replace(/^\[|\]$/g, '');
  const core = await lookup(host, { all: true }).catch(() => []);
  return {
    isEnabled: config.rateLimits,
    perMinute: {
      general: config.rateGeneral,
      authenticated: config.rateAuthenticated,
      heavy: config.rateHeavy,
    },
    trustedProxies: config.trustedProxies,
    exempt: [...config.rateExempt, ...core.map(({ address }) => address)],
    isGeneralByDefault: true,
  };
}
