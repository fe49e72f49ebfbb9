import type { NetworkEvent } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { readProvable } from '../../state/messages/shared.ts';
import type { Schema } from '../../store/schema.ts';
import type { EventLog } from './log.ts';

type Log = Pick<EventLog, 'read' | 'readKinds'>;

/** The message that an event can be checked by: the one that came into force, or that changed an instance. */
function causeOf(event: NetworkEvent): string | null {
  if (event.kind === 'message') return event.data.item_hash;
  return event.kind === 'instance' ? (event.cause ?? null) : null;
}

/** The event log, with the message itself in each event of one that came into force, or that changed an instance. */
export function withBodies(db: Kysely<Schema>, log: Log): Log {
  const add = async (events: readonly NetworkEvent[]): Promise<NetworkEvent[]> => {
    const texts = await readProvable(db, [...new Set(events.flatMap((event) => causeOf(event) ?? []))]);
    return events.map((event) =>
      event.kind === 'message' || event.kind === 'instance'
        ? { ...event, shared: texts.get(causeOf(event) ?? '') ?? null }
        : event,
    );
  };
  return {
    read: async (cursor, limit) => add(await log.read(cursor, limit)),
    async readKinds(cursor, limit, kinds) {
      const page = await log.readKinds(cursor, limit, kinds);
      return { ...page, events: await add(page.events) };
    },
  };
}
