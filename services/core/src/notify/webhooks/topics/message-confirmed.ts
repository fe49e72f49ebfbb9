import { messageNew } from './message-new.ts';
import type { Topic } from './topic.ts';

/** A message was written to a chain. */
export const messageConfirmed: Topic = {
  name: 'message.confirmed',
  kind: 'message_confirmed',
  read: messageNew.read,
};
