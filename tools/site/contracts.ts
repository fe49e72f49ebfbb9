import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMPUTE_API } from '@skerry/protocol/api/compute/index';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { COMPUTE_EXAMPLES } from '@skerry/protocol/api/examples/compute';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { CREDIT_SERVICE_EXAMPLES } from '@skerry/protocol/api/examples/credit';
import { GATEWAY_EXAMPLES } from '@skerry/protocol/api/examples/gateway';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { STATUS_EXAMPLES } from '@skerry/protocol/api/examples/status';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import type { Api, Examples, Operation } from '@skerry/protocol/api/operation';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { STATUS_API } from '@skerry/protocol/api/status';
import { ROOT } from '../source.ts';

/** The HTTP contract of each service, with what its document says of it, and where the client finds each operation. */

export interface Contract {
  /** In addresses of pages: `core`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Of its document, below docs/. */
  readonly document: string;
  readonly api: Api;
  readonly examples: Examples;
}

/** Where an operation is imported from. */
export interface Source {
  /** `@skerry/protocol/api/core/messages` */
  readonly module: string;
  /** `MESSAGES_API` */
  readonly table: string;
  readonly id: string;
}

const SERVICES: readonly [name: string, document: string, api: Api, examples: Examples][] = [
  ['core', 'openapi.json', CORE_API, CORE_EXAMPLES],
  ['compute', 'openapi-compute.json', COMPUTE_API, COMPUTE_EXAMPLES],
  ['scheduler', 'openapi-scheduler.json', SCHEDULER_API, SCHEDULER_EXAMPLES],
  ['gateway', 'openapi-gateway.json', GATEWAY_API, GATEWAY_EXAMPLES],
  ['credit', 'openapi-credit.json', CREDIT_API, CREDIT_SERVICE_EXAMPLES],
  ['status', 'openapi-status.json', STATUS_API, STATUS_EXAMPLES],
];

export const listContracts = (): Contract[] =>
  SERVICES.map(([name, document, api, examples]) => {
    const { info } = JSON.parse(readFileSync(join(ROOT, 'docs', document), 'utf8')) as {
      info: { title: string; description: string };
    };
    return { name, document, api, examples, title: info.title, description: info.description };
  });

const isTable = (value: unknown): value is Api => typeof value === 'object' && value !== null;

/** The smallest table that has an operation is where a reader looks for it. */
export async function findSources(): Promise<ReadonlyMap<Operation, Source>> {
  const found = new Map<Operation, { readonly source: Source; readonly size: number }>();
  const top = 'packages/protocol/src/api';
  for (const file of globSync('**/*.ts', { cwd: join(ROOT, top), exclude: ['**/*.test.ts'] }).sort()) {
    const exported = Object.entries((await import(join(ROOT, top, file))) as Record<string, unknown>);
    for (const [table, api] of exported.filter(([name]) => name.endsWith('_API'))) {
      if (!isTable(api)) continue;
      const size = Object.keys(api).length;
      const module = `@skerry/protocol/api/${file.replace(/\.ts$/, '')}`;
      for (const [id, operation] of Object.entries(api))
        if (size < (found.get(operation)?.size ?? Number.POSITIVE_INFINITY))
          found.set(operation, { source: { module, table, id }, size });
    }
  }
  return new Map([...found].map(([operation, { source }]) => [operation, source]));
}
