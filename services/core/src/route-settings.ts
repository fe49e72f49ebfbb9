import { rateLimitsOf } from '@skerry/kit';
import type { RouteSettings } from './api/rooms.ts';
import type { CoreConfig } from './config.ts';

/** The part of the settings that the routes need. */
export function routeSettingsOf(config: CoreConfig): RouteSettings {
  const { name: nodeName, allocationWaitMs, uploadLimitBytes, drainMs, ipfsPinWaitMs } = config;
  return {
    nodeName,
    allocationWaitMs,
    uploadLimitBytes,
    uploads: {
      uploads: config.uploads,
      uploadsPerClient: config.uploadsPerClient,
      unpinnedBytes: config.unpinnedBytes,
      unpinnedBytesPerClient: config.unpinnedBytesPerClient,
    },
    maxStreams: config.maxStreams,
    streamReserve: config.streamReserve,
    streamsPerClient: config.streamsPerClient,
    streamStallMs: config.streamStallMs,
    maxSockets: config.maxSockets,
    socketReserve: config.socketReserve,
    socketsPerClient: config.socketsPerClient,
    drainMs,
    ipfsPinWaitMs,
    limits: rateLimitsOf(config),
    operatorToken: config.operatorToken,
  };
}
