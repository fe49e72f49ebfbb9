import { answer, type Client, type Handlers, Shares } from '@skerry/kit';
import {
  AppError,
  answerRanges,
  decodeAskedFiles,
  decodeKeys,
  decodeQuestion,
  encodeHeldFiles,
  encodeRanges,
  type Range,
} from '@skerry/protocol';
import { NEXT_PLACE_HEADER, type SYNC_API } from '@skerry/protocol/api/core/sync';
import { Budget, RANGES_BUDGET } from '../peers/sync/budget.ts';
import { readPage, readWanted } from '../peers/sync/envelopes.ts';
import { encodeFrames } from '../peers/sync/frames.ts';
import { listHeld } from '../store/files/files.ts';
import type { Rooms } from './rooms.ts';

/** Bodies of messages that are being read at once: each may have megabytes. A peer asks for one page while it works on another. */
const READS = { total: 4, reserve: 1, perClient: 2 };

const AGAIN = { details: { retry_after: 1 } };

/** What comparing ranges costs: each of them, and each key that is listed. */
const costOf = (ranges: readonly Range[]) =>
  ranges.reduce((cost, range) => cost + 1 + (range.kind === 'keys' ? range.keys.length : 0), 0);

const binary = (bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
  answer(200, bytes, { 'content-type': 'application/octet-stream', ...headers });

/** Bounds what is read at once; who comes beyond it is told to come back. */
function createReads(isReady: () => boolean) {
  const reads = new Shares(READS);
  return async <T>(client: Client, read: () => Promise<T>): Promise<T> => {
    if (!isReady()) throw new AppError('OVERLOADED', 'the node is still counting its messages');
    const place = reads.take(client);
    if (place === 'share')
      throw new AppError('RATE_LIMITED', `a client may ask for ${READS.perClient} pages at once`, AGAIN);
    if (place === 'all') throw new AppError('OVERLOADED', 'too many peers are being answered');
    try {
      return await read();
    } finally {
      place.release();
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
    async readMessages({ query, request }) {
      const { texts, next } = await bounded(clientOf(request), () => readPage(db, sync.set, query.place));
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
    async fetchMessages({ body, request }) {
      const wanted = decodeKeys(body);
      return binary(encodeFrames(await bounded(clientOf(request), () => readWanted(db, sync.set, wanted))));
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
