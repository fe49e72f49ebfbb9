import type { Service } from '@skerry/kit';
import { type CoreConfig, coreConfig } from './config.ts';
import { startCore } from './core.ts';
import { coreKeeping } from './keeping.ts';

/** The core node: keeps, shares and answers messages. */
export const coreService: Service<CoreConfig> = {
  name: 'core',
  summary: 'the core node: stores, exchanges and serves messages',
  config: coreConfig,
  keeping: coreKeeping,
  // docs/roles.md
  sharesDataDir: true,
  start: startCore,
};

export { describeApi } from './describe.ts';
export { describeDatabase, renumberEvents } from './node/backup/database.ts';
