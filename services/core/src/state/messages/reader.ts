import { prepared, textsOf } from '@skerry/database';
import { gathered } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Reads } from '../../store/reads.ts';
import type { Schema } from '../../store/schema.ts';
import { type Hold, LIGHT_BYTES, readWeighed } from '../lists/weight.ts';
import { SHOWN_COLUMNS } from './columns.ts';
import { type Confirmation, type Confirmations, shownConfirmations } from './confirmations.ts';

/** A message with what is shown of its confirmations. */
export interface ReadMessage {
  readonly row: StoredMessage;
  readonly confirmations: Confirmations;
}

/** Reads a message by item hash; undefined where there is none. Throws what `hold` throws. */
export type MessageReader = (hash: string, hold: Hold) => Promise<ReadMessage | undefined>;

/** More statements at a time make each of them wait for a processor; whoever comes meanwhile shares the next. */
const GATHERING = { atOnce: 2, keysMax: 64 } as const;

type Row = StoredMessage & { readonly shown: readonly Confirmation[] | null };

async function readMessages(
  db: Kysely<Schema>,
  hashes: readonly string[],
  hold: Hold,
): Promise<ReadonlyMap<string, ReadMessage>> {
  const rows = await readWeighed<Row>(db, {
    begin: prepared(hashes),
    columns: sql`${SHOWN_COLUMNS}, ${shownConfirmations} as shown`,
    from: sql`messages m where item_hash = any(${textsOf(hashes)})`,
    hold,
  });
  const messageOf = ({ shown, ...row }: Row): ReadMessage => ({
    row,
    confirmations: new Map([[row.item_hash, shown ?? []]]),
  });
  return new Map(rows.map((row) => [row.item_hash, messageOf(row)]));
}

/** Nobody's share is the place for what many have asked for together. */
function holdLight(bytes: number): void {
  if (bytes > LIGHT_BYTES) throw new AppError('LIST_TOO_COSTLY', 'these messages are read one by one');
}

/** What is light is counted as it is sent (Answers): with what proves it (`bodies=shared`) that may be five times its text. */
const holdHeavy =
  (hold: Hold): Hold =>
  (bytes) => {
    if (bytes > LIGHT_BYTES) hold(bytes);
  };

const isTooHeavy = (error: unknown) => error instanceof AppError && error.code === 'LIST_TOO_COSTLY';

/** Those that are asked for at once are read in one statement, unless they are heavy together. */
export function createMessageReader({
  db,
  common,
  after,
}: Pick<Reads, 'db' | 'common' | 'after'>): MessageReader {
  const read = gathered((hashes) => readMessages(common, hashes, holdLight), GATHERING);
  const readAlone = async (hash: string, hold: Hold) =>
    (await readMessages(db, [hash], holdHeavy(hold))).get(hash);
  return async (hash, hold) => {
    // How fresh a standby must be differs from reader to reader.
    if (after() !== undefined) return readAlone(hash, hold);
    try {
      return await read(hash);
    } catch (error) {
      if (!isTooHeavy(error)) throw error;
      return readAlone(hash, hold);
    }
  };
}
