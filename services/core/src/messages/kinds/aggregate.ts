import { AppError, parseAggregateContent } from '@skerry/protocol';
import { accept, type MessageKind } from '../accepted.ts';
import { ownerOf } from '../owner.ts';
import { aggregateSubject } from '../verdict.ts';
import { SECURITY_KEY } from '../permissions.ts';

/** AGGREGATE: fields of one of the owner's aggregates; each field belongs to the latest element that has it. */
export const aggregate: MessageKind = (message) => {
  const content = parseAggregateContent(message.content);
  const owner = ownerOf(message, content.address);
  if (content.key === SECURITY_KEY && owner !== message.sender) {
    throw new AppError('NOT_PERMITTED', `the aggregate ${SECURITY_KEY} is written by its owner alone`);
  }
  return accept(message, {
    owner,
    subject: aggregateSubject(owner, content.key),
    changes: [{ kind: 'aggregate', key: content.key, content: content.content }],
  });
};
