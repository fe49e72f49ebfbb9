import { lookup } from 'node:dns/promises';
import { type RateLimitOptions, rateLimitsOf } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';

/** Who may ask how often. The core node that this one follows sends its callers' runs: it is found by its name at the start. */
export async function readLimits(config: ComputeConfig): Promise<RateLimitOptions> {
  const host = new URL(config.coreUrl).hostname.replace(/^\[|\]$/g, '');
  const core = await lookup(host, { all: true }).catch(() => []);
  const limits = rateLimitsOf(config);
  const exempt = [...limits.exempt, ...core.map(({ address }) => address)];
  return { ...limits, exempt };
}
