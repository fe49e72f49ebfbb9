import type { Keeping } from '@skerry/kit';
import type { GatewayConfig } from './config.ts';
import { ID_FILE } from './sync/store.ts';

/** What a gateway must not lose (docs/backup.md): nothing but its settings. The table spares the first moments after a start. */
export const gatewayKeeping: Keeping<GatewayConfig> = {
  entries: [
    { path: 'routes.json', kind: 'state', what: 'the last good table' },
    { path: 'domains.json', kind: 'state', what: 'the last good routes of custom domains, of a front' },
    { path: ID_FILE, kind: 'passing', what: 'what it is told from other gateways of its server by' },
    { path: 'listeners.sock', kind: 'passing', what: 'where the next process takes the listeners over' },
    { path: 'front.sock', kind: 'passing', what: 'the same of a front' },
  ],
  idFile: ID_FILE,
  elsewhere: async ({ apiKeyFile }) => (apiKeyFile === undefined ? [] : [apiKeyFile]),
};
