import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { cached, type Handlers } from '@skerry/kit';
import { parseMessageHash } from '@skerry/protocol';
import type { PROGRAMS_API } from '@skerry/protocol/api/core/programs';
import {
  getProgram,
  listStanding,
  listTriggered,
  type StoredProgram,
} from '../../state/programs/programs.ts';
import { answerOf, submitBody } from '../messages/submit.ts';
import type { Rooms } from '../rooms.ts';
import { Assignments } from './assign.ts';
import { forwardRun, orderRunners } from './forward.ts';

const CALLER_BYTES = 16;
/** Many compute nodes ask again and again. */
const STANDING_MS = 1_000;

/** Bytes of strangers, as files are: no page that this node serves. */
const HEADERS = {
  'content-security-policy': 'sandbox',
  'x-content-type-options': 'nosniff',
  'net-program-outcome': 'answered',
};

type ProgramRooms = Pick<
  Rooms,
  | 'answers'
  | 'longLists'
  | 'db'
  | 'commonDb'
  | 'intake'
  | 'events'
  | 'listRunners'
  | 'listRunnersNow'
  | 'forwarding'
  | 'clientOf'
>;

/** Nobody is told from memory that no node runs a program: whoever waits for the first one comes a moment after it. */
async function findRunners({ listRunners, listRunnersNow }: ProgramRooms, stored: StoredProgram) {
  const known = orderRunners(await listRunners(), stored);
  return known.length > 0 ? known : orderRunners(await listRunnersNow(), stored);
}

/** Programs: keep and run (specification, "Programs"). */
export function programHandlers(rooms: ProgramRooms): Handlers<typeof PROGRAMS_API> {
  const { answers, longLists, db, commonDb, intake, events, listRunners, forwarding, clientOf } = rooms;
  // Compute nodes are told callers apart, and nothing else of them.
  const key = randomBytes(CALLER_BYTES);
  const callerOf = (request: IncomingMessage) =>
    createHmac('sha256', key).update(clientOf(request).key).digest().toString('hex', 0, CALLER_BYTES);
  const readStanding = cached(STANDING_MS, async () => ({
    cursor: await events.lastCursor(),
    programs: await listStanding(commonDb),
  }));
  const assignments = new Assignments();
  return {
    createProgram: async ({ body, request }) =>
      answerOf(await submitBody({ intake }, body, { type: 'PROGRAM', client: clientOf(request) }), {}),
    async listProgramsOnMessage({ query, reply }) {
      const on = longLists.askedIn(db, reply);
      const programs = await listTriggered(on, query.sort_order === 1, answers.of(reply));
      return programs.map(({ itemHash, filters }) => ({
        item_hash: itemHash,
        content: { on: { message: filters } },
      }));
    },
    async listAssignedPrograms({ params: { node_id: nodeId } }) {
      const [{ cursor, programs }, runners] = await Promise.all([readStanding(), listRunners()]);
      const own = assignments.listFor(nodeId, programs, runners);
      return {
        programs: own.map(({ programHash, isPersistent, filters }) => ({
          item_hash: programHash,
          persistent: isPersistent,
          message: [...filters],
        })),
        cursor,
      };
    },
    async listProgramRunners({ params }) {
      const stored = await getProgram(db, parseMessageHash(params.program_hash).hash);
      const runners = await findRunners(rooms, stored);
      return { runners: runners.map(({ runtimes: _, ...runner }) => runner) };
    },
    async runProgram({ params, body, request, reply }) {
      const { hash } = parseMessageHash(params.program_hash);
      const stored = await getProgram(db, hash);
      const output = await forwardRun(await findRunners(rooms, stored), stored, body.variables ?? {}, {
        ...forwarding,
        caller: callerOf(request.raw),
      });
      const start = output.start === undefined ? {} : { 'net-program-start': output.start };
      return reply
        .headers({ ...HEADERS, ...start })
        .status(output.status)
        .type(output.contentType)
        .send(output.body);
    },
  };
}
