import type { Logger } from '@skerry/kit';
import type { Kysely } from 'kysely';
import { type CoreConfig, peerUrlsOf } from './config.ts';
import { askTrust } from './peers/trust/ask.ts';
import { enforcementOf, orderedAddresses } from './peers/trust/decide.ts';
import { type GivenTrust, Trust } from './peers/trust/trust.ts';
import type { Schema } from './store/schema.ts';

export type TrustConfig = Pick<
  CoreConfig,
  'schedulers' | 'scoringPublishers' | 'creditPublishers' | 'knownCoreNodes' | 'creditEnforcement'
>;

/** What the settings say of whom the node trusts; what they leave out is not in it. */
function givenTrust(config: TrustConfig): GivenTrust {
  const { schedulers, scoringPublishers, creditPublishers, knownCoreNodes, creditEnforcement } = config;
  const once = (addresses: readonly string[]) => orderedAddresses(new Set(addresses));
  return {
    ...(schedulers && { schedulers: once(schedulers) }),
    ...(scoringPublishers && { scoring_publishers: once(scoringPublishers) }),
    ...(creditPublishers && { credit_publishers: once(creditPublishers) }),
    ...(knownCoreNodes && { known_core_nodes: once(knownCoreNodes) }),
    ...(creditEnforcement !== undefined && { credit_enforcement: enforcementOf(creditEnforcement) }),
  };
}

export const openTrust = (
  config: TrustConfig & Pick<CoreConfig, 'peers'>,
  parts: { readonly db: Kysely<Schema>; readonly leads: boolean; readonly log: Logger },
) => Trust.open({ ...parts, given: givenTrust(config), peers: peerUrlsOf(config).length });

/** Asks the peers whom they trust, where the settings leave it open. */
export function createLearning(
  config: Pick<CoreConfig, 'peers'>,
  { trust, nodeAddress, signal }: { trust: Trust; nodeAddress: string; signal: AbortSignal },
): () => Promise<void> {
  const urls = peerUrlsOf(config);
  return async () => {
    if (urls.length === 0 || !trust.isAsking) return;
    const told = await Promise.all(urls.map((url) => askTrust(url, nodeAddress, signal)));
    if (!signal.aborted) await trust.hear(told.filter((one) => one !== undefined));
  };
}
