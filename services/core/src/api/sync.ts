import { answer, type Handlers } from '@skerry/kit';
import {
  AppError,
  answerRanges,
  decodeKeys,
  decodeQuestion,
  encodeRanges,
  type Range,
} from '@skerry/protocol';
import { NEXT_PLACE_HEADER, type SYNC_API } from '@skerry/protocol/api/core/sync';
import { Budget, RANGES_BUDGET } from '../peers/sync/budget.ts';
import { readPage, readWanted } from '../peers/sync/envelopes.ts';
import { encodeFrames } from '../peers/sync/frames.ts';
import type { Rooms } from './rooms.ts';

/** Bodies of messages that are being read at once: each may have megabytes. */
const READS_MAX = 4;

/** What comparing ranges costs: each of them, and each key that is listed. */
const costOf = (ranges: readonly Range[]) =>
  ranges.reduce((cost, range) => cost + 1 + (range.kind === 'keys' ? range.keys.length : 0), 0);

const binary = (bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
  answer(200, bytes, { 'content-type': 'application/octet-stream', ...headers });

/** Bounds what is read at once; who comes beyond it is told to come back. */
function createReads(isReady: () => boolean) {
  let reading = 0;
  return async <T>(read: () => Promise<T>): Promise<T> => {
    if (!isReady()) throw new AppError('OVERLOADED', 'the node is still counting its messages');
    if (reading >= READS_MAX) throw new AppError('OVERLOADED', `${READS_MAX} peers are being answered`);
    reading++;
    try {
      return await read();
    } finally {
      reading--;
    }
  };
}

/** Keeping in step: what core nodes ask each other (docs/peers.md). */
export function syncHandlers({
  db,
  sync,
  settings,
  clientOf,
  nodeAddress,
}: Pick<Rooms, 'db' | 'sync' | 'settings' | 'clientOf' | 'nodeAddress'>): Handlers<typeof SYNC_API> {
  const budget = new Budget(RANGES_BUDGET, settings.limits.now);
  const bounded = createReads(() => sync.set.isReady);
  return {
    getSyncStatus: () => ({ ...sync.syncer.view(), address: nodeAddress }),
    async readMessages({ query }) {
      const { texts, next } = await bounded(() => readPage(db, sync.set, query.place));
      return binary(encodeFrames(texts), next === null ? {} : { [NEXT_PLACE_HEADER]: next });
    },
    compareRanges({ body, request }) {
      if (!sync.set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
      const client = clientOf(request);
      budget.check(client);
      const question = decodeQuestion(body);
      const ranges = answerRanges(sync.set.index, question);
      budget.charge(client, costOf(question) + costOf(ranges));
      return binary(encodeRanges(ranges));
    },
    async fetchMessages({ body }) {
      const wanted = decodeKeys(body);
      return binary(encodeFrames(await bounded(() => readWanted(db, sync.set, wanted))));
    },
    offerMessages: ({ body, request }) =>
      sync.offers.take(Buffer.from(body.buffer, body.byteOffset, body.byteLength), clientOf(request).key),
  };
}
