import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpServer, createLogger } from '@skerry/kit';
import type { Programs } from './programs.ts';
import { addProgramRoutes } from './routes.ts';

test('a stranger who publishes a program that takes its time fills no log with warnings', async () => {
  await using app = await createHttpServer({ log: createLogger('test', 'silent') });
  const slow = new Map<string, number | undefined>();
  app.addHook('onRoute', ({ url, config }) => void slow.set(url, config?.slowAfterMs));
  const client = { key: 'somebody', isExempt: false };
  addProgramRoutes(app, {} as Programs, () => client as never, []);
  await app.ready();
  for (const path of ['/run/:hash', '/vm/:hash', '/vm/:hash/*']) assert.equal(slow.get(path), Infinity, path);
  assert.equal(slow.get('/status/check/fastapi'), undefined, 'which is ours');
});
