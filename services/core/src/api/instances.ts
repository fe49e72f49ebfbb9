import type { Client, Handlers } from '@skerry/kit';
import {
  AppError,
  AWAITING_NODE,
  type InstanceState,
  type NetworkEvent,
  parseItemHash,
  type VerifiedMessage,
} from '@skerry/protocol';
import type { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import type { Kysely } from 'kysely';
import { waitForEvent } from '../notify/events/wait.ts';
import { findInstance, findInstanceState, listInstances } from '../state/instances/instances.ts';
import { instanceViewOfOne, instanceViewsOf } from '../state/instances/provable.ts';
import type { Schema } from '../store/schema.ts';
import { readAddress } from './address.ts';
import { answerOf, submitBody } from './messages/submit.ts';
import { nextTimedCursorOf, paginationOf, timedPageOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

/** The path names an instance and so does the signed content: they must agree, or a proxy could aim a message elsewhere. */
const checkPathId =
  (pathId: string) =>
  ({ content }: VerifiedMessage): void => {
    const instanceId = parseItemHash(pathId);
    const signedId = content?.instance_id;
    if (signedId === instanceId) return;
    throw new AppError('ID_MISMATCH', `the path says ${instanceId}, the signed content ${String(signedId)}`);
  };

type Used = Pick<
  Rooms,
  'db' | 'reads' | 'intake' | 'events' | 'settings' | 'signal' | 'clientOf' | 'longLists'
>;
type InstanceHandlers = Handlers<typeof INSTANCES_API>;

async function getState(db: Kysely<Schema>, text: string): Promise<InstanceState> {
  const instanceId = parseItemHash(text);
  const state = await findInstanceState(db, instanceId);
  if (!state) throw new AppError('INSTANCE_NOT_FOUND', `there is no instance ${instanceId}`);
  return state;
}

/** Creates an instance. The scheduler usually decides within milliseconds; the caller then has the address at once. */
const createInstance =
  ({ db, intake, events, settings, signal, clientOf }: Used): InstanceHandlers['createInstance'] =>
  async ({ body, request }) => {
    const reads = events.askedIn(db);
    const cursor = await reads.lastCursor();
    const submitted = await submitBody({ intake }, body, { type: 'INSTANCE', client: clientOf(request) });
    const instanceId = submitted.message.itemHash;
    const isDecided = (event: NetworkEvent) =>
      event.kind === 'instance' &&
      event.data.instance_id === instanceId &&
      (event.data.node_id !== null || event.data.reason?.code !== AWAITING_NODE.code);
    if (submitted.verdict.status === 'processed')
      await waitForEvent(events, reads, cursor, isDecided, settings.allocationWaitMs, signal);
    const instance = await findInstance(db, instanceId);
    return answerOf(submitted, { instance_id: instanceId, ipv6: instance?.ipv6 ?? '' });
  };

const listInstancesOf =
  ({ db, reads, events, longLists }: Used): InstanceHandlers['listInstances'] =>
  async ({ query, reply }) => {
    // A standby's list may lack what came after the number that it was asked for: whoever follows the list must hear of that.
    const eventCursor = String(reads.after() ?? (await events.askedIn(db).lastCursor()));
    const filter = {
      address: query.address === undefined ? undefined : await readAddress(db, query.address),
      status: query.status,
      nodeId: query.node_id === undefined ? undefined : parseItemHash(query.node_id),
    };
    const on = longLists.askedIn(db, reply);
    const { states, total } = await listInstances(on, filter, timedPageOf(query));
    const instances = await instanceViewsOf(db, states, query.bodies === 'shared');
    return {
      instances,
      pagination: paginationOf(query, total),
      next_cursor: nextTimedCursorOf(instances, query.limit, (last) => ({
        time: last.created_at,
        itemHash: last.instance_id,
      })),
      cursor: eventCursor,
    };
  };

/** Instances: create, get, list, update, control (specification, "Instances"). */
export function instanceHandlers(rooms: Used): InstanceHandlers {
  const { db, intake, clientOf } = rooms;
  /** Whoever changes an instance by its path is told when there is none, instead of waiting for it to come. */
  const change = async (type: string, pathId: string, body: Uint8Array, client: Client) => {
    await getState(db, pathId);
    return answerOf(await submitBody({ intake }, body, { type, check: checkPathId(pathId), client }), {});
  };
  return {
    createInstance: createInstance(rooms),
    async getInstance({ params, query }) {
      const state = await getState(db, params.instance_id);
      return instanceViewOfOne(db, state, query.bodies === 'shared');
    },
    listInstances: listInstancesOf(rooms),
    updateInstance: ({ params, body, request }) =>
      change('INSTANCE_UPDATE', params.instance_id, body, clientOf(request)),
    controlInstance: ({ params, body, request }) =>
      change('INSTANCE_CONTROL', params.instance_id, body, clientOf(request)),
  };
}
