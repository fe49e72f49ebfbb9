import { answer, FairSlots, type Handlers } from '@skerry/kit';
import {
  AppError,
  answerRanges,
  decodeAskedFiles,
  decodeKeys,
  decodeQuestion,
  encodeHeldFiles,
  encodeRanges,
  type OrderedKeys,
  type Range,
} from '@skerry/protocol';
import { NEXT_PLACE_HEADER, type SYNC_API } from '@skerry/protocol/api/core/sync';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Budget, RANGES_BUDGET } from '../peers/sync/budget.ts';
import { readPage, readWanted } from '../peers/sync/envelopes.ts';
import { encodeInTurns } from '../peers/sync/frames.ts';
import { CONNECTIONS } from '../store/connections.ts';
import { listHeld } from '../store/files/files.ts';
import type { Rooms } from './rooms.ts';
import { closing } from './shares/closing.ts';
import { Paced } from './shares/paced.ts';

/**
 * Bodies of messages that are read at once, of megabytes each, in ten times as many milliseconds. A peer asks for one page while it works on
 * another, and for what it heard of beside that.
 */
const READS = {
  running: { total: CONNECTIONS.pages, reserve: 0, perClient: CONNECTIONS.pages },
  waiting: { total: 100, reserve: 10, perClient: 4 },
  waitMs: 10_000,
  what: 'pages of messages',
  /** Seconds. */
  retryAfter: 1,
} as const;

/** Of strangers, each has one at a time: those who catch up wait for what everybody else asks. */
const STRANGERS_READS = { ...READS, running: { total: CONNECTIONS.pages, reserve: 0, perClient: 1 } };

/** What comparing ranges costs: each of them, and each key that is listed. */
const costOf = (ranges: readonly Range[]) =>
  ranges.reduce((cost, range) => cost + 1 + (range.kind === 'keys' ? range.keys.length : 0), 0);

const binary = (bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
  answer(200, bytes, { 'content-type': 'application/octet-stream', ...headers });

/** Bounds what is read and put together at once, and how much of the time that takes for strangers. */
function createReads({ sync, clientOf }: Pick<Rooms, 'sync' | 'clientOf'>) {
  const reads = new FairSlots(READS);
  const paced = new Paced(STRANGERS_READS);
  return async <T>(reply: FastifyReply, read: () => Promise<T>): Promise<T> => {
    if (!sync.set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
    const client = clientOf(reply.request);
    const gone = closing(reply);
    return await paced.run(client, () => reads.run(client, read, gone), gone);
  };
}

/** Keeping in step: what core nodes ask each other (docs/peers.md). */
export function syncHandlers(
  used: Pick<Rooms, 'db' | 'sync' | 'settings' | 'clientOf' | 'nodeAddress'>,
): Handlers<typeof SYNC_API> {
  const { db, sync, settings, clientOf, nodeAddress } = used;
  const budget = new Budget(RANGES_BUDGET, settings.limits.now);
  const bounded = createReads(used);
  const compare =
    (find: () => OrderedKeys) =>
    ({ body, request }: { readonly body: Uint8Array; readonly request: FastifyRequest }) => {
      if (!sync.set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
      const client = clientOf(request);
      budget.check(client);
      const question = decodeQuestion(body);
      const ranges = answerRanges(find(), question);
      budget.charge(client, costOf(question) + costOf(ranges));
      return binary(encodeRanges(ranges));
    };
  return {
    getSyncStatus: () => ({ ...sync.syncer.view(), address: nodeAddress }),
    async readMessages({ query, reply }) {
      const { frames, next } = await bounded(reply, async () => {
        const page = await readPage(db, sync.set, query.place);
        return { frames: await encodeInTurns(page.texts), next: page.next };
      });
      return binary(frames, next === null ? {} : { [NEXT_PLACE_HEADER]: next });
    },
    compareRanges: compare(() => sync.set.index),
    compareForgotten: compare(() => sync.set.forgotten),
    async fetchMessages({ body, reply }) {
      const wanted = decodeKeys(body);
      return binary(await bounded(reply, async () => encodeInTurns(await readWanted(db, sync.set, wanted))));
    },
    async findHeldFiles({ body }) {
      const names = decodeAskedFiles(body);
      return binary(encodeHeldFiles(names, await listHeld(db, names)));
    },
    offerMessages({ body, request }) {
      const { key, isExempt } = clientOf(request);
      return sync.offers.take(Buffer.from(body.buffer, body.byteOffset, body.byteLength), key, isExempt);
    },
  };
}
