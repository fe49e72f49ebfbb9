import type { CopyValue } from '@skerry/database';
import type { Accepted } from '../accepted.ts';

/** An accepted message with the number of its content's shape (state/lists/shapes.ts), which it has once it was processed. */
export interface Shaped {
  readonly accepted: Accepted;
  readonly shape: number | null;
}

const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** What a row of `messages` says of the message itself, by column. What became of it is beside that (write-messages.ts). */
export const ROW = {
  item_hash: ({ accepted }: Shaped) => accepted.message.itemHash,
  form: ({ accepted }: Shaped) => accepted.message.form,
  chain: ({ accepted }: Shaped) => accepted.message.chain,
  sender: ({ accepted }: Shaped) => accepted.message.sender,
  signed_sender: ({ accepted }: Shaped) => accepted.message.signedSender ?? null,
  owner: ({ accepted }: Shaped) => accepted.owner,
  type: ({ accepted }: Shaped) => accepted.message.type,
  channel: ({ accepted }: Shaped) => accepted.message.channel,
  time: ({ accepted }: Shaped) => accepted.message.time,
  sent_time: ({ accepted }: Shaped) => accepted.message.sentTime ?? null,
  content_type: ({ accepted }: Shaped) => accepted.contentType,
  subject: ({ accepted }: Shaped) => accepted.subject,
  tags: ({ accepted }: Shaped) => accepted.tags,
  shape: ({ shape }: Shaped) => shape,
  content: ({ accepted }: Shaped) => jsonOf(accepted.message.content),
  source_text: ({ accepted }: Shaped) => accepted.message.sourceText,
  signature: ({ accepted }: Shaped) => accepted.message.signature,
  noted_ms: ({ accepted }: Shaped) => accepted.message.notedMs ?? null,
} satisfies Readonly<Record<string, (one: Shaped) => CopyValue>>;
export type RowColumn = keyof typeof ROW;
