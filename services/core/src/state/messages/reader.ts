import { prepared, textsOf } from '@skerry/database';
import { gathered } from '@skerry/kit';
import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Reads } from '../../store/reads.ts';
import type { Schema } from '../../store/schema.ts';
import { type Confirmation, type Confirmations, shownConfirmations } from './confirmations.ts';

/** A message with what is shown of its confirmations. */
export interface ReadMessage {
  readonly row: StoredMessage;
  readonly confirmations: Confirmations;
}

/** Reads a message by item hash; undefined where there is none. */
export type MessageReader = (hash: string) => Promise<ReadMessage | undefined>;

/** More statements at a time make each of them wait for a processor; whoever comes meanwhile shares the next. */
const GATHERING = { atOnce: 2, keysMax: 64 } as const;

type Row = StoredMessage & { readonly shown: readonly Confirmation[] | null };

async function readMessages(
  db: Kysely<Schema>,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, ReadMessage>> {
  const { rows } = await sql<Row>`${prepared(hashes)}
    select m.*, ${shownConfirmations} as shown from messages m where item_hash = any(${textsOf(hashes)})`.execute(
    db,
  );
  const messageOf = ({ shown, ...row }: Row): ReadMessage => ({
    row,
    confirmations: new Map([[row.item_hash, shown ?? []]]),
  });
  return new Map(rows.map((row) => [row.item_hash, messageOf(row)]));
}

/** Those that are asked for at once are read in one statement. */
export function createMessageReader({ db, after }: Pick<Reads, 'db' | 'after'>): MessageReader {
  const read = gathered((hashes) => readMessages(db, hashes), GATHERING);
  // How fresh a standby must be differs from reader to reader.
  return async (hash) => (after() === undefined ? read(hash) : (await readMessages(db, [hash])).get(hash));
}
