import { aggregateKeyOf } from '@skerry/protocol';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Confirmations } from './confirmations.ts';
import { networkViewOf } from './view.ts';

/** How much of their contents lists show: all, what the message is about, or nothing. */
export type ContentFormat = 'full' | 'headers' | 'none';

const refOf = (content: unknown) => (content as { ref?: unknown } | null)?.ref;

/** What a message is about, by its type. */
function headersOf(row: StoredMessage, content: unknown): Record<string, unknown> {
  switch (row.type) {
    case 'POST':
      return { type: row.content_type, ref: row.subject };
    case 'AGGREGATE':
      return { key: aggregateKeyOf({ type: row.type, owner: row.owner, subject: row.subject }) };
    case 'STORE':
      return { item_hash: row.subject, ref: refOf(content) };
    default:
      return {};
  }
}

const withoutNothing = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** A message in a list of deployed nodes, with as much of its content as is asked for. */
export function networkListViewOf(
  row: StoredMessage,
  confirmations: Confirmations,
  format: ContentFormat,
): NetworkMessageView {
  const { content, ...view } = networkViewOf(row, confirmations);
  if (format === 'full') return { ...view, content };
  if (format === 'none') return view;
  const address = (content as { address?: unknown } | null)?.address ?? row.owner;
  return { ...view, content: withoutNothing({ address, ...headersOf(row, content) }) };
}
