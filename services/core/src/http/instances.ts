import type { HttpServer } from '@skerry/kit';
import {
  AppError,
  InstanceContent,
  InstanceControlContent,
  InstanceStatus,
  InstanceUpdateContent,
  InstanceView,
  type NetworkEvent,
  PaginationView,
  parseItemHash,
  type VerifiedMessage,
} from '@skerry/protocol';
import Type from 'typebox';
import { waitForEvent } from '../events/wait.ts';
import { findInstance, listInstances } from '../instances/read.ts';
import { placeCursor } from './cursor.ts';
import { reads, takesSigned } from './declare.ts';
import { normalizeAddress } from './filters.ts';
import { NextCursor, nextCursorOf, pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';
import { answerSubmitted, readBodiesAsBytes, submissionViews, submitBody } from './submission.ts';

const CHANGE_ERRORS = ['INVALID_HASH', 'INSTANCE_NOT_FOUND', 'ID_MISMATCH', 'MESSAGE_FORGOTTEN'] as const;
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

const created = {
  instance_id: Type.String(),
  ipv6: Type.String({
    description: 'empty where no node was chosen yet; GET the instance for phase and reason',
  }),
};
const createdViews = {
  200: Type.Object({ ...submissionViews[200].properties, ...created }),
  202: Type.Object({ ...submissionViews[202].properties, ...created }),
};

/** The path names an instance and so does the signed content: they must agree, or a proxy could aim a message elsewhere. */
const checkPathId =
  (pathId: string) =>
  ({ content }: VerifiedMessage): void => {
    const instanceId = parseItemHash(pathId);
    const signedId = content?.instance_id;
    if (signedId === instanceId) return;
    throw new AppError('ID_MISMATCH', `the path says ${instanceId}, the signed content ${String(signedId)}`);
  };

/** Whoever changes an instance by its path is told when there is none, instead of waiting for it to come. */
async function checkExists(rooms: Rooms, pathId: string): Promise<void> {
  const instanceId = parseItemHash(pathId);
  if (!(await findInstance(rooms.db, instanceId)))
    throw new AppError('INSTANCE_NOT_FOUND', `there is no instance ${instanceId}`);
}

/** Instances: create, get, list, update, control (specification, "Instances"). */
export async function instanceRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  app.post(
    '/instances',
    {
      schema: { summary: 'Create an instance (signed INSTANCE)', response: createdViews },
      config: takesSigned(
        { type: 'INSTANCE', content: InstanceContent },
        'INVALID_SSH_KEY',
        'UNKNOWN_IMAGE',
        'MESSAGE_FORGOTTEN',
      ),
    },
    async (request, reply) => {
      const cursor = await rooms.events.lastCursor();
      const submitted = await submitBody(rooms, request.body, { type: 'INSTANCE' });
      const instanceId = submitted.message.itemHash;
      // The scheduler usually decides within milliseconds; the caller then has the address at once.
      const decided = (event: NetworkEvent) =>
        event.kind === 'instance' &&
        event.data.instance_id === instanceId &&
        (event.data.node_id !== null || event.data.reason?.code !== 'AWAITING_NODE');
      if (submitted.outcome.status === 'processed')
        await waitForEvent(rooms.events, cursor, decided, rooms.settings.allocationWaitMs, rooms.signal);
      const instance = await findInstance(rooms.db, instanceId);
      return answerSubmitted(reply, submitted, { instance_id: instanceId, ipv6: instance?.ipv6 ?? '' });
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
            next_cursor: NextCursor,
            cursor: Type.String({ description: 'events after it are not in the list yet' }),
          }),
        },
      },
      config: reads('INVALID_HASH', 'INVALID_CURSOR'),
    },
    async ({ query }) => {
      const eventCursor = await rooms.events.lastCursor();
      const filter = {
        address: query.address === undefined ? undefined : normalizeAddress(query.address),
        status: query.status,
        nodeId: query.node_id === undefined ? undefined : parseItemHash(query.node_id),
      };
      const after = placeCursor.read(query.cursor);
      const page = { ...pageOf(query), after: after && { createdAt: after.t, instanceId: after.h } };
      const { instances, total } = await listInstances(rooms.db, filter, page);
      return {
        instances,
        pagination: paginationOf(query, total),
        next_cursor: nextCursorOf(instances, query.limit, (last) =>
          placeCursor.write({ t: last.created_at, h: last.instance_id }),
        ),
        cursor: eventCursor,
      };
    },
  );

  app.put(
    '/instances/:instance_id',
    {
      schema: {
        summary: 'Change name, description, firewall (signed INSTANCE_UPDATE)',
        params: IdParams,
        response: submissionViews,
      },
      config: takesSigned({ type: 'INSTANCE_UPDATE', content: InstanceUpdateContent }, ...CHANGE_ERRORS),
    },
    async (request, reply) => {
      const { instance_id: pathId } = request.params;
      await checkExists(rooms, pathId);
      const check = { type: 'INSTANCE_UPDATE', also: checkPathId(pathId) };
      return answerSubmitted(reply, await submitBody(rooms, request.body, check));
    },
  );

  app.post(
    '/instances/:instance_id/control',
    {
      schema: {
        summary: 'Start, stop, restart (signed INSTANCE_CONTROL)',
        params: IdParams,
        response: submissionViews,
      },
      config: takesSigned({ type: 'INSTANCE_CONTROL', content: InstanceControlContent }, ...CHANGE_ERRORS),
    },
    async (request, reply) => {
      const { instance_id: pathId } = request.params;
      await checkExists(rooms, pathId);
      const check = { type: 'INSTANCE_CONTROL', also: checkPathId(pathId) };
      return answerSubmitted(reply, await submitBody(rooms, request.body, check));
    },
  );
}
