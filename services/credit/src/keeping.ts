import type { Keeping } from '@skerry/kit';
import type { CreditConfig } from './config.ts';

/**
 * What a credit service must not lose (docs/backup.md). An older journal credits nothing twice: what the core node shows is
 * looked up before anything is sent, and of two reports of a purchase, or charges of a period, the ledger counts one.
 */
export const creditKeeping: Keeping<CreditConfig> = {
  identity: 'key',
  entries: [
    { path: 'key', kind: 'secret', what: 'the key that core nodes trust it by' },
    { path: 'purchases.jsonl', kind: 'state', what: 'what was bought, at which price' },
    {
      path: 'progress.json',
      kind: 'state',
      what: 'how far each chain was read, what was charged, and for how long low balances were announced',
    },
  ],
  elsewhere: async ({ salesFile }) => (salesFile === undefined ? [] : [salesFile]),
};
