import { createLogger, readConfig } from '@skerry/kit';
import { coreConfig } from './config.ts';
import { createApi } from './http/api.ts';
import type { Rooms } from './http/rooms.ts';
import { createCoreMetrics } from './metrics/metrics.ts';
import { routeSettingsOf } from './route-settings.ts';

/** The OpenAPI 3.1 document of the routes, with the default settings. No request is served, so no room is needed behind them. */
export async function describeApi(): Promise<object> {
  const settings = routeSettingsOf(readConfig(coreConfig, {}));
  const metrics = await createCoreMetrics({ isProcess: false });
  const api = await createApi({ settings, metrics } as Rooms, createLogger('describe', 'silent'));
  await api.ready();
  const document = api.swagger();
  await api.close();
  return document;
}
