import { AppError, ownerOf, PRICING_KEY } from '@skerry/protocol';
import { accept, type MessageKind } from '../accepted.ts';
import { SECURITY_KEY } from '../permissions.ts';
import { aggregateSubject } from '../verdict.ts';

/** AGGREGATE: fields of one of the owner's aggregates; each field belongs to the latest element that has it. */
export const aggregate: MessageKind<'AGGREGATE'> = (message, { key, content, address }) => {
  const owner = ownerOf(message.sender, { address });
  if (key === SECURITY_KEY && owner !== message.sender) {
    throw new AppError('NOT_PERMITTED', `the aggregate ${SECURITY_KEY} is written by its owner alone`);
  }
  return accept(message, {
    subject: aggregateSubject(owner, key),
    changes: [
      { kind: 'aggregate', key, content },
      ...(key === PRICING_KEY ? [{ kind: 'credit_prices' } as const] : []),
    ],
  });
};
