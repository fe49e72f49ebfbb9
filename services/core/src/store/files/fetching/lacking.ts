import { type Kysely, sql } from 'kysely';
import { fileKey, fileOf, fileOfIn, isFileKeyIn } from '../../dependency-keys.ts';
import type { Schema } from '../../schema.ts';

/** Files that are looked for at the same time; what is beyond waits for its turn. */
const WANTED_MAX = 10_000;
/** Of a key with a SHA-256. What is named by a CID comes by IPFS (store/ipfs/fetcher.ts), and has another hash than its name. */
const KEY_CHARS = fileKey('').length + 64;

/**
 * Names of files that pending messages lack. Senders take turns, so that however many files one of them names, only its
 * own wait for it; of each, those that expire first are at the front. Equals come in any order: a queue of keys that nobody used before,
 * which are free, leaves those behind it their chance. A message whose content came hangs on that, too, while it lacks
 * its file: what is here is left out.
 */
export async function listLacking(db: Kysely<Schema>, random: () => number): Promise<string[]> {
  const { rows } = await sql<{ key: string; turn: number }>`
    select key, min(turn)::int as turn from (
      select d.key, m.decide_by_ms,
        row_number() over (partition by m.sender order by m.decide_by_ms, d.key) as turn
      from messages m join dependencies d on d.item_hash = m.item_hash
      where m.status = 'pending' and ${isFileKeyIn('d.key')} and length(d.key) = ${KEY_CHARS}
        and not exists (select from files where files.hash = ${fileOfIn('d.key')})) as lacking
    group by key order by min(turn), min(decide_by_ms), key limit ${WANTED_MAX}`.execute(db);
  const drawn = rows.map(({ key, turn }) => ({ key, turn, lot: random() }));
  return drawn.sort((a, b) => a.turn - b.turn || a.lot - b.lot).map(({ key }) => fileOf(key));
}
