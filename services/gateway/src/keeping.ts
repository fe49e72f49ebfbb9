import type { Keeping } from '@skerry/kit';
import type { GatewayConfig } from './config.ts';

/** What a gateway must not lose (docs/backup.md): nothing but its settings. The table spares the first moments after a start. */
export const gatewayKeeping: Keeping<GatewayConfig> = {
  entries: [
    { path: 'routes.json', kind: 'state', what: 'the last good table' },
    { path: 'domains.json', kind: 'state', what: 'the last good routes of custom domains, of a front' },
    { path: 'listeners.sock', kind: 'passing', what: 'where the next process takes the listeners over' },
    { path: 'front.sock', kind: 'passing', what: 'the same of a front' },
  ],
  elsewhere: async ({ apiKeyFile }) => (apiKeyFile === undefined ? [] : [apiKeyFile]),
};
