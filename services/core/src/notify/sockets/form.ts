import type { StoredMessage } from '../../intake/stored.ts';
import type { Confirmations } from '../../state/messages/confirmations.ts';
import { type ContentFormat, networkListViewOf } from '../../state/messages/list-view.ts';
import { textFrame } from './frame.ts';

/** How much of their contents messages are wanted with. */
export type Form = ContentFormat;

/** A message as it goes out, in the form of the lists of deployed nodes. */
export const frameOf = (row: StoredMessage, confirmations: Confirmations, form: Form): Buffer =>
  textFrame(JSON.stringify(networkListViewOf(row, confirmations, form)));
