import { createLogger } from '@skerry/kit';
import { createApi } from './api.ts';
import type { Rooms } from './rooms.ts';

/** The OpenAPI 3.1 document of the routes. No request is served, so no room is needed behind them. */
export async function describeApi(): Promise<object> {
  const settings = { nodeName: '', allocationWaitMs: 0, uploadLimitBytes: 1, maxStreams: 1 };
  const api = await createApi({ settings } as Rooms, createLogger('describe', 'silent'));
  await api.ready();
  const document = api.swagger();
  await api.close();
  return document;
}
