import { asDatabaseError } from '@skerry/database';
import {
  createHttpServer,
  expectAll,
  frontHandlers,
  type Handlers,
  type HttpServer,
  type Logger,
  referenceHandlers,
  type ServeOptions,
  serveAll,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { DEPLOYED_DOCS_API } from '@skerry/protocol/api/core/deployed/docs';
import { CORE_API } from '@skerry/protocol/api/core/index';
import { SOCKETS_API } from '@skerry/protocol/api/core/sockets';
import type { Operation } from '@skerry/protocol/api/operation';
import type { FRONT_API, REFERENCE_API } from '@skerry/protocol/api/reference';
import { aggregateHandlers } from './aggregates.ts';
import { serveConsole } from './console.ts';
import { costHandlers } from './credits/costs.ts';
import { creditHandlers } from './credits/credits.ts';
import { addressHandlers } from './deployed/addresses.ts';
import { networkListHandlers } from './deployed/lists.ts';
import { publishHandlers } from './deployed/publish.ts';
import { eventHandlers } from './events.ts';
import { gatherArgs, indexerHandlers } from './indexer.ts';
import { HEALTH_PATHS, nodeHandlers, PROCESS_PATHS } from './info.ts';
import { instanceHandlers } from './instances.ts';
import { ipfsHandlers } from './ipfs/ipfs.ts';
import { messageHandlers } from './messages/messages.ts';
import { nodeMetricsHandlers } from './node-metrics.ts';
import { programHandlers } from './programs/programs.ts';
import { reachabilityHandlers } from './reachability.ts';
import { serveReading } from './reading.ts';
import type { Rooms } from './rooms.ts';
import { socketHandlers } from './sockets/sockets.ts';
import { stateHandlers } from './state.ts';
import { networkStorageHandlers } from './storage/network-storage.ts';
import { storageHandlers } from './storage/storage.ts';
import { FILE_OPTIONS, FORM_OPTIONS, FORM_OR_FILE_OPTIONS } from './storage/storage-form.ts';
import { READ_OPTIONS } from './storage/storage-read.ts';
import { uploadHandlers } from './storage/upload-parts.ts';
import { syncHandlers } from './sync.ts';
import { vrfHandlers } from './vrf.ts';
import { webhookHandlers } from './webhooks/webhooks.ts';

export const INFO = {
  title: 'Skerry core node',
  description: `Messages are signed by their senders: \`x-signed\` marks what takes one, the signature is the only credential.
Every error is \`{error, status: "error", code}\`; each operation lists the codes that it can answer.
Requests are counted per client address in the class that \`x-rate-limit\` names; more than \`per_minute\` are answered 429 with \`Retry-After\`.
Every answer carries \`x-request-id\`, the caller's own where it sent one.`,
};

/** For whoever asks for the document: a node that is not asked for it does without. */
export const readExamples = async () =>
  (await import('@skerry/protocol/api/examples/core/index')).CORE_EXAMPLES;

/** The contract under its own paths and under those of deployed nodes. */
function contractHandlers(
  rooms: Rooms,
): Handlers<typeof FRONT_API> & Handlers<typeof REFERENCE_API> & Handlers<typeof DEPLOYED_DOCS_API> {
  const own = referenceHandlers(CORE_API, INFO, rooms.settings.limits.perMinute, readExamples);
  return {
    ...frontHandlers(CORE_API, INFO),
    ...own,
    getDeployedDocument: own.getDocument,
    getDeployedReference: own.getReference,
  };
}

/** The same rooms, for handlers whose reads a standby may answer. */
const reading = (rooms: Rooms): Rooms => ({ ...rooms, db: rooms.reads.db });

const handlersOf = (rooms: Rooms, log: Logger): Handlers<typeof CORE_API> => ({
  ...messageHandlers(reading(rooms)),
  ...networkListHandlers(reading(rooms)),
  ...addressHandlers(reading(rooms)),
  ...publishHandlers(rooms),
  ...storageHandlers(rooms),
  ...uploadHandlers(rooms),
  ...networkStorageHandlers(rooms),
  ...ipfsHandlers(rooms),
  ...aggregateHandlers(reading(rooms)),
  ...programHandlers(rooms),
  ...instanceHandlers(reading(rooms)),
  ...webhookHandlers(rooms),
  ...creditHandlers(reading(rooms)),
  ...costHandlers(rooms),
  ...syncHandlers(rooms),
  ...indexerHandlers(rooms),
  ...nodeMetricsHandlers(reading(rooms)),
  ...eventHandlers(rooms),
  ...socketHandlers(rooms, log),
  ...stateHandlers(rooms),
  ...vrfHandlers(rooms),
  ...nodeHandlers(rooms),
  ...reachabilityHandlers(rooms),
  ...contractHandlers(rooms),
});

/** What is no part of the contract. */
const OPTIONS = new Map<Operation, ServeOptions>([
  [CORE_API.listChainEvents, { preValidation: gatherArgs }],
  [CORE_API.storeFile, FORM_OPTIONS],
  [CORE_API.sendPart, FILE_OPTIONS],
  [CORE_API.addFile, FORM_OR_FILE_OPTIONS],
  [CORE_API.addIpfsFile, FORM_OPTIONS],
  [CORE_API.addIpfsCar, FORM_OPTIONS],
  [CORE_API.getFile, READ_OPTIONS],
  [CORE_API.getRawFile, READ_OPTIONS],
  [CORE_API.getIpfsFile, READ_OPTIONS],
  [CORE_API.getIpfsPath, READ_OPTIONS],
  [CORE_API.getGatewayFile, READ_OPTIONS],
  [CORE_API.getGatewayPath, READ_OPTIONS],
  // Whoever published the program decides how long it takes.
  [CORE_API.runProgram, { config: { slowAfterMs: Infinity } }],
]);

/** The core node's HTTP door. */
export async function createApi(rooms: Rooms, log: Logger): Promise<HttpServer> {
  const { limits, drainMs, roles } = rooms.settings;
  const app = await createHttpServer({
    log,
    corsMethods: ['GET', 'HEAD', 'POST', 'PUT'],
    translateError: asDatabaseError,
    limits,
    drainMs,
    observer: rooms.metrics.http,
    urgentPaths: HEALTH_PATHS,
    socketPaths: Object.values(SOCKETS_API).map(({ path }) => path),
  });
  app.addHook('onRequest', ({ url }, _reply, done) => {
    if (url.includes('%00'))
      throw new AppError('INVALID_PARAMETERS', 'no path, filter or cursor holds a NUL character');
    done();
  });
  if (!roles.includes('answer'))
    app.addHook('onRequest', ({ routeOptions }, _reply, done) => {
      if (!PROCESS_PATHS.has(routeOptions.url ?? ''))
        throw new AppError(
          'ROLE_ELSEWHERE',
          `this process has the roles ${roles.join(', ')}; ask one that has "answer"`,
        );
      done();
    });
  serveReading(app, rooms);
  rooms.answers.watch(app);
  rooms.askers.watch(app, rooms.clientOf);
  serveConsole(app, rooms.settings.services, log);
  expectAll(app, CORE_API);
  serveAll(app, CORE_API, handlersOf(rooms, log), (operation) => OPTIONS.get(operation) ?? {});
  return app;
}
