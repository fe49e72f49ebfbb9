import { type Topic, textOf, textsOf } from './topic.ts';

/** A message was processed. Its content is left out: who wants it asks for it by its hash, also after it was forgotten. */
export const messageNew: Topic = {
  name: 'message.new',
  kind: 'message',
  read: ({ data }) => ({
    type: textOf(data.type),
    channel: textOf(data.channel),
    sender: textOf(data.sender),
    tags: textsOf(data.tags),
  }),
};
