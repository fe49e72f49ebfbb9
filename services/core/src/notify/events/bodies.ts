import type { NetworkEvent } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { readProvable } from '../../state/messages/shared.ts';
import type { Schema } from '../../store/schema.ts';
import type { EventLog } from './log.ts';

type Log = Pick<EventLog, 'read' | 'readKinds' | 'lastCursor' | 'wakes'>;

/** The event log, with the message itself in each event of one that came into force. */
export function withBodies({ db, events: log }: { readonly db: Kysely<Schema>; readonly events: Log }): Log {
  const add = async (events: readonly NetworkEvent[]): Promise<NetworkEvent[]> => {
    const hashes = events.flatMap((event) => (event.kind === 'message' ? [event.data.item_hash] : []));
    const texts = await readProvable(db, hashes);
    return events.map((event) =>
      event.kind === 'message' ? { ...event, shared: texts.get(event.data.item_hash) ?? null } : event,
    );
  };
  return {
    get wakes() {
      return log.wakes;
    },
    lastCursor: () => log.lastCursor(),
    read: async (cursor, limit) => add(await log.read(cursor, limit)),
    async readKinds(cursor, limit, kinds) {
      const page = await log.readKinds(cursor, limit, kinds);
      return { ...page, events: await add(page.events) };
    },
  };
}
