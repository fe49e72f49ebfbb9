import { awaitSettings, runService, type Service, variablesOf } from '@skerry/kit';
import { withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';
import type { DaemonName } from './daemon-names.ts';
import { withSettings } from './settings-file.ts';

export type AnyService = Service<Record<string, unknown>>;

/** A service's package is loaded only when it is asked for. */
const LOADERS: Readonly<Record<DaemonName, () => Promise<unknown>>> = {
  core: async () => (await import('@skerry/core')).coreService,
  scheduler: async () => (await import('@skerry/scheduler')).schedulerService,
  compute: async () => (await import('@skerry/compute')).computeService,
  gateway: async () => (await import('@skerry/gateway')).gatewayService,
  monitor: async () => (await import('@skerry/monitor')).monitorService,
  credit: async () => (await import('@skerry/credit')).creditService,
  ipfs: async () => (await import('@skerry/core/ipfs-peer')).ipfsPeerService,
  status: async () => (await import('@skerry/status')).statusService,
};

// Each service reads its own settings; what they are called does not matter here.
export const loadService = async (name: DaemonName) => (await LOADERS[name]()) as AnyService;

export interface DaemonOptions {
  readonly settings?: string;
  /** Whether the rest of the environment comes from whoever started it. */
  readonly awaitSettings?: boolean;
}

export async function runDaemon(
  { environment }: Context,
  name: DaemonName,
  { settings, awaitSettings: isAwaiting }: DaemonOptions,
): Promise<number> {
  const service = await loadService(name);
  const own = await withSettings(environment, settings, variablesOf(service.config));
  const all = isAwaiting ? { ...own, ...(await awaitSettings()) } : own;
  const exitCode = await runService(service, withoutCommandVariables(all));
  // The service is over; nothing that it left behind may hold the process.
  process.exit(exitCode);
}
