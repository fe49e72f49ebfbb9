import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DECIMALS, type TokenChain } from './chain.ts';
import { TestDaemon } from './daemon.ts';

/** Blocks until a transfer is final. */
export const FINALITY = 4;
export const PRICE = {
  symbol: 'STT',
  decimals: DECIMALS,
  creditsPerToken: 1_000_000n,
  bonusBasisPoints: 2_000,
};

/**
 * Two core nodes, the first with the chain, and a credit service that sells credit for the token; only the first node runs yet.
 *
 * @param dir where each has a directory
 * @param publisher the address that core nodes trust
 * @param more settings of the core nodes, and of the credit service
 */
export async function openNetwork(
  dir: string,
  chain: TokenChain,
  receiver: string,
  publisher: string,
  more: { core?: Record<string, string>; credit?: Record<string, string> } = {},
) {
  const indexer = {
    networks: [
      {
        name: 'anvil',
        chain_id: 31337,
        endpoints: [chain.url],
        poll_ms: 50,
        finality: 'depth',
        finality_depth: FINALITY,
        verification: 'every',
      },
    ],
  };
  const token = {
    symbol: PRICE.symbol,
    contract: chain.token,
    decimals: DECIMALS,
    credits_per_token: Number(PRICE.creditsPerToken),
    bonus_basis_points: PRICE.bonusBasisPoints,
  };
  const sales = { networks: [{ name: 'anvil', chain: 'ETH', chain_id: 31337, receiver, tokens: [token] }] };
  await writeFile(join(dir, 'indexer.json'), JSON.stringify(indexer));
  await writeFile(join(dir, 'sales.json'), JSON.stringify(sales));
  const core = (name: string, own: Record<string, string> = {}) =>
    new TestDaemon('core', {
      SKERRY_CORE_DATA_DIR: join(dir, name),
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_CREDIT_PUBLISHERS: publisher,
      ...more.core,
      ...own,
    });
  const first = core('first', { SKERRY_CORE_INDEXER_FILE: join(dir, 'indexer.json') });
  const second = core('second');
  await first.start();
  const credit = new TestDaemon('credit', {
    SKERRY_CREDIT_DATA_DIR: join(dir, 'credit'),
    SKERRY_CREDIT_HOST: '127.0.0.1',
    SKERRY_CREDIT_CORE_URL: first.url,
    SKERRY_CREDIT_SALES_FILE: join(dir, 'sales.json'),
    SKERRY_CREDIT_POLL_INTERVAL_MS: '50',
    SKERRY_CREDIT_CHARGE_INTERVAL_SECONDS: '1',
    SKERRY_CREDIT_WATCH_INTERVAL_SECONDS: '1',
    ...more.credit,
  });
  return { first, second, credit };
}
