import { sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

type Column = keyof Schema['messages'];

/** Of a text that was signed the content is read (intake/stored.ts, `contentOf`): beside it, it would come twice. */
const CONTENT = "case when m.source_text is null or m.form = 'upload' then m.content end as content";

const NAMES: readonly Exclude<Column, 'content'>[] = Object.keys({
  item_hash: true,
  form: true,
  chain: true,
  sender: true,
  signed_sender: true,
  owner: true,
  type: true,
  channel: true,
  time: true,
  sent_time: true,
  content_type: true,
  subject: true,
  tags: true,
  shape: true,
  source_text: true,
  erased: true,
  signature: true,
  status: true,
  reason: true,
  decide_by_ms: true,
  settled_at_ms: true,
  received_at: true,
  noted_ms: true,
} satisfies Record<Exclude<Column, 'content'>, true>) as Exclude<Column, 'content'>[];

/** Columns of a message `m` for whoever shows it (view.ts), as text: a column each would be put together again for each read. */
export const SHOWN_COLUMNS = sql.raw<unknown>([...NAMES.map((name) => `m.${name}`), CONTENT].join(', '));
