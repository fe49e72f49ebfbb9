import type { StoredMessage } from '../../intake/stored.ts';
import type { Confirmations } from '../../state/messages/confirmations.ts';
import { networkViewOf } from '../../state/messages/view.ts';
import { textFrame } from './frame.ts';

/** How messages are wanted: whole, or without their contents. */
export type Form = 'full' | 'none';

/** A message as it goes out, in the form of the lists of deployed nodes. */
export function frameOf(row: StoredMessage, confirmations: Confirmations, form: Form): Buffer {
  const view = networkViewOf(row, confirmations);
  return textFrame(JSON.stringify(form === 'none' ? { ...view, content: undefined } : view));
}
