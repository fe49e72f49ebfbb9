import type { HttpServer } from '@skerry/kit';
import {
  AppError,
  InstanceContent,
  InstanceControlContent,
  InstanceStatus,
  InstanceUpdateContent,
  InstanceView,
  LIMITS,
  type NetworkEvent,
  PaginationView,
  parseItemHash,
  SubmitView,
} from '@skerry/protocol';
import Type from 'typebox';
import { waitForEvent } from '../events/wait.ts';
import { findInstance, listInstances } from '../instances/read.ts';
import type { Accepted } from '../messages/accepted.ts';
import { reads, takesSigned } from './declare.ts';
import { normalizeAddress } from './filters.ts';
import { pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';
import { acceptBody, readBodiesAsBytes } from './signed-body.ts';

const CHANGE_ERRORS = ['INVALID_HASH', 'INSTANCE_NOT_FOUND', 'ID_MISMATCH'] as const;
const IdParams = Type.Object({ instance_id: Type.String() });

const ListQuery = Type.Object(
  {
    ...pageQuery,
    address: Type.Optional(Type.String({ description: 'owner' })),
    status: Type.Optional(InstanceStatus),
    node_id: Type.Optional(Type.String({ description: 'the compute node that runs it' })),
  },
  { additionalProperties: false },
);

const CreatedView = Type.Object({
  ...SubmitView.properties,
  instance_id: Type.String(),
  ipv6: Type.String({
    description: 'empty where no node was chosen yet; GET the instance for phase and reason',
  }),
});

/** The path names an instance and so does the signed content: they must agree, or a proxy could aim a message elsewhere. */
function checkPathId(accepted: Accepted, pathId: string): void {
  const instanceId = parseItemHash(pathId);
  const signedId = accepted.message.content.instance_id;
  if (signedId !== instanceId) {
    throw new AppError('ID_MISMATCH', `the path says ${instanceId}, the signed content ${String(signedId)}`);
  }
}

/** Instances: create, get, list, update, control (specification, "Instances"). */
export async function instanceRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);
  const submit = async (accepted: Accepted) => {
    await rooms.pipeline.submit(accepted);
    return { item_hash: accepted.message.itemHash, status: 'success' as const };
  };

  app.post(
    '/instances',
    {
      schema: { summary: 'Create an instance (signed INSTANCE)', response: { 200: CreatedView } },
      config: takesSigned({ type: 'INSTANCE', content: InstanceContent }, 'INVALID_SSH_KEY'),
      bodyLimit: LIMITS.jsonBodyBytes,
    },
    async (request) => {
      const accepted = acceptBody(request.body, rooms.now(), 'INSTANCE');
      const instanceId = accepted.message.itemHash;
      const cursor = await rooms.events.lastCursor();
      const submitted = await submit(accepted);
      // The scheduler usually decides within milliseconds; the caller then has the address at once.
      const decided = (event: NetworkEvent) =>
        event.kind === 'instance' &&
        event.data.instance_id === instanceId &&
        (event.data.node_id !== null || event.data.reason?.code !== 'AWAITING_NODE');
      await waitForEvent(rooms.events, cursor, decided, rooms.settings.allocationWaitMs, rooms.signal);
      const instance = await findInstance(rooms.db, instanceId);
      return { ...submitted, instance_id: instanceId, ipv6: instance?.ipv6 ?? '' };
    },
  );

  app.get(
    '/instances/:instance_id',
    {
      schema: { summary: 'One instance', params: IdParams, response: { 200: InstanceView } },
      config: reads('INVALID_HASH', 'INSTANCE_NOT_FOUND'),
    },
    async (request) => {
      const instanceId = parseItemHash(request.params.instance_id);
      const instance = await findInstance(rooms.db, instanceId);
      if (!instance) throw new AppError('INSTANCE_NOT_FOUND', `there is no instance ${instanceId}`);
      return instance;
    },
  );

  app.get(
    '/instances',
    {
      schema: {
        summary: 'Instances, newest first',
        querystring: ListQuery,
        response: {
          200: Type.Object({
            instances: Type.Array(InstanceView),
            pagination: PaginationView,
            cursor: Type.String({ description: 'events after it are not in the list yet' }),
          }),
        },
      },
      config: reads('INVALID_HASH'),
    },
    async ({ query }) => {
      const cursor = await rooms.events.lastCursor();
      const filter = {
        address: query.address === undefined ? undefined : normalizeAddress(query.address),
        status: query.status,
        nodeId: query.node_id === undefined ? undefined : parseItemHash(query.node_id),
      };
      const { instances, total } = await listInstances(rooms.db, filter, pageOf(query));
      return { instances, pagination: paginationOf(query, total), cursor };
    },
  );

  app.put(
    '/instances/:instance_id',
    {
      schema: {
        summary: 'Change name, description, firewall (signed INSTANCE_UPDATE)',
        params: IdParams,
        response: { 200: SubmitView },
      },
      config: takesSigned({ type: 'INSTANCE_UPDATE', content: InstanceUpdateContent }, ...CHANGE_ERRORS),
    },
    async (request) => {
      const accepted = acceptBody(request.body, rooms.now(), 'INSTANCE_UPDATE');
      checkPathId(accepted, request.params.instance_id);
      return submit(accepted);
    },
  );

  app.post(
    '/instances/:instance_id/control',
    {
      schema: {
        summary: 'Start, stop, restart (signed INSTANCE_CONTROL)',
        params: IdParams,
        response: { 200: SubmitView },
      },
      config: takesSigned({ type: 'INSTANCE_CONTROL', content: InstanceControlContent }, ...CHANGE_ERRORS),
    },
    async (request) => {
      const accepted = acceptBody(request.body, rooms.now(), 'INSTANCE_CONTROL');
      checkPathId(accepted, request.params.instance_id);
      return submit(accepted);
    },
  );
}
