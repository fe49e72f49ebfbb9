import { answer, type Handlers } from '@skerry/kit';
import { AppError, LIMITS, parseMessageHash } from '@skerry/protocol';
import { MESSAGE_FILTERS } from '@skerry/protocol/api/core/common/filters';
import type { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import type { Kysely } from 'kysely';
import { totalMessages } from '../../state/lists/count.ts';
import { resolveFilter } from '../../state/lists/filter.ts';
import { listMessages } from '../../state/lists/messages.ts';
import { readFilters } from '../../state/lists/parameters.ts';
import { PROPERTIES } from '../../state/lists/properties.ts';
import type { Hold } from '../../state/lists/weight.ts';
import { loadConfirmations } from '../../state/messages/confirmations.ts';
import { hideForgotten, listForgetting } from '../../state/messages/find.ts';
import { createMessageReader, type MessageReader, type ReadMessage } from '../../state/messages/reader.ts';
import { addProvable } from '../../state/messages/shared.ts';
import { viewOf } from '../../state/messages/view.ts';
import { listMessagesOfFile } from '../../store/files/references.ts';
import type { Schema } from '../../store/schema.ts';
import { nextTimedCursorOf, paginationOf, placeOfMessage, timedPageOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { answerOf, networkRefusalOf, submitBody } from './submit.ts';
import { submittedViewOf, verdictOf } from './verdict-view.ts';

/** Messages that are named to somebody who asks for a file where messages are. */
const STORES_NAMED = 10;

async function getMessage(
  read: MessageReader,
  db: Kysely<Schema>,
  text: string,
  hold: Hold,
): Promise<ReadMessage> {
  const { hash } = parseMessageHash(text);
  const message = await read(hash, hold);
  if (message) return message;
  const stores = await listMessagesOfFile(db, hash, STORES_NAMED);
  if (stores.length === 0) throw new AppError('MESSAGE_NOT_FOUND', `there is no message ${hash} here`);
  throw new AppError('MESSAGE_NOT_FOUND', `${hash} is a file; the message ${stores[0]} stores it`, {
    details: { file_hash: hash, messages: stores },
  });
}

type Used = Pick<Rooms, 'db' | 'reads' | 'intake' | 'metrics' | 'clientOf' | 'answers' | 'longLists'>;
type MessageHandlers = Handlers<typeof MESSAGES_API>;

/** One message: submitted, and looked at (specification, "Messages"). */
function oneMessage({
  db,
  reads,
  intake,
  metrics,
  clientOf,
  answers,
}: Used): Pick<MessageHandlers, 'submitMessage' | 'getMessage' | 'getMessageStatus' | 'getMessageContent'> {
  const read = createMessageReader(reads);
  return {
    async submitMessage({ body, request }) {
      try {
        return answerOf(await submitBody({ intake }, body, { client: clientOf(request) }), {});
      } catch (error) {
        const refusal = networkRefusalOf(error);
        if (!refusal) throw error;
        metrics.http.refused((error as AppError).code);
        return answer(422, refusal);
      }
    },
    async getMessage({ params, query, reply }) {
      const { row, confirmations } = await getMessage(read, db, params.hash, answers.of(reply));
      const [shown = row] = await hideForgotten(db, [row]);
      const isForgotten = shown.status === 'forgotten';
      const forgottenBy = isForgotten ? await listForgetting(db, row.item_hash) : [];
      const [view] = await addProvable(
        db,
        [viewOf(shown, confirmations)],
        query.bodies === 'shared',
        LIMITS.jsonBodyBytes,
      );
      return {
        ...view!,
        ...verdictOf(row),
        ...submittedViewOf(row, confirmations, shown),
        ...(isForgotten ? { forgotten_by: forgottenBy } : {}),
      };
    },
    async getMessageStatus({ params, reply }) {
      const { row } = await getMessage(read, db, params.hash, answers.of(reply));
      return { item_hash: row.item_hash, ...verdictOf(row), reason: row.reason };
    },
    async getMessageContent({ params, reply }) {
      const { row } = await getMessage(read, db, params.hash, answers.of(reply));
      if (row.status !== 'processed') {
        throw new AppError(
          row.status === 'forgotten' ? 'MESSAGE_FORGOTTEN' : 'MESSAGE_NOT_PROCESSED',
          `the message ${row.item_hash} is ${row.status}`,
        );
      }
      const content = viewOf(row).content as { content?: unknown };
      return reply.send((row.type === 'POST' ? content.content : content) ?? null);
    },
  };
}

const lists = (used: Used): Pick<MessageHandlers, 'listMessages'> => ({
  async listMessages({ query, reply }) {
    const { answers, longLists } = used;
    const db = longLists.askedIn(used.db, reply);
    const filter = await resolveFilter(db, readFilters(MESSAGE_FILTERS, PROPERTIES, '/messages', query));
    const [rows, total] = await Promise.all([
      listMessages(db, filter, timedPageOf(query), answers.of(reply)),
      totalMessages(db, filter),
    ]);
    const confirmations = await loadConfirmations(db, rows);
    return {
      messages: await addProvable(
        db,
        rows.map((row) => viewOf(row, confirmations)),
        query.bodies === 'shared',
      ),
      pagination: paginationOf(query, total),
      next_cursor: nextTimedCursorOf(rows, query.limit, placeOfMessage),
    };
  },
});

/** Messages: submit, get, list. */
export const messageHandlers = (rooms: Used): MessageHandlers => ({ ...oneMessage(rooms), ...lists(rooms) });
