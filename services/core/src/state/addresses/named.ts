import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { meansIndex } from '../lists/driver.ts';

/** Whether anything in force here names an address: it sent a message or owns one, or has a line of credit or a notice. */
export async function isNamed(db: Kysely<Schema>, address: string): Promise<boolean> {
  const { rows } = await sql<{ named: boolean }>`
    select exists (select from messages x where x.sender = ${address} and x.status = 'processed'
        and ${meansIndex('x', 'messages_by_sender')})
      or exists (select from messages x where x.owner = ${address} and x.status = 'processed' and x.owner <> x.sender
        and ${meansIndex('x', 'messages_by_owner')})
      or exists (select from credit_entries e where e.owner = ${address} and e.counts)
      or exists (select from credit_notices n where n.owner = ${address}) as named`.execute(db);
  return rows[0]!.named;
}
