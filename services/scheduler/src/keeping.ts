import type { Keeping } from '@skerry/kit';
import type { SchedulerConfig } from './config.ts';

/** What a scheduler must not lose (docs/backup.md): the rest follows from messages, and is worked out again at every start. */
export const schedulerKeeping: Keeping<SchedulerConfig> = {
  identity: 'key',
  entries: [
    { path: 'key', kind: 'secret', what: 'the key that core nodes trust it by' },
    { path: 'problems-since.json', kind: 'passing', what: 'since when the network is not in order' },
    { path: 'nodes-wrong-since.json', kind: 'passing', what: 'since when nodes get nothing new' },
    { path: 'nodes-left.json', kind: 'passing', what: 'which nodes left often, and are held back' },
    { path: 'networks-changed.json', kind: 'passing', what: 'which nodes changed their network often' },
  ],
};
