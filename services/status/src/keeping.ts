import type { Keeping } from '@skerry/kit';
import type { StatusConfig } from './config.ts';

/** What a status service must not lose (docs/backup.md). */
export const statusKeeping: Keeping<StatusConfig> = {
  entries: [
    { path: 'snapshot.json', kind: 'state', what: 'results: a week of them in full, a year by days' },
    { path: 'journal.jsonl', kind: 'state', what: 'the newest of them' },
  ],
};
