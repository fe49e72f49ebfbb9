import {
  type AggregateContent,
  AppError,
  AUTHORIZATIONS,
  aggregateSubject,
  ownerOf,
  PRICING_KEY,
  parseAggregateContent,
  SECURITY_KEY,
  whyNotUnderstood,
  whyTooLarge,
} from '@skerry/protocol';
import { defineKind, PROCESSED, rejected } from '../accepted.ts';
import { aggregateEffect } from '../effects/aggregates.ts';
import { priceEffect } from '../effects/credits.ts';

/** Whoever grants less, or restricts less, than was meant learns it while it can be mended. */
const whyGrantless = ({ key, content }: AggregateContent) =>
  key === SECURITY_KEY && Object.hasOwn(content, AUTHORIZATIONS)
    ? whyNotUnderstood(content[AUTHORIZATIONS])
    : undefined;

/** AGGREGATE: fields of one of the owner's aggregates; each field belongs to the latest element that has it. */
export const aggregate = defineKind({
  read: parseAggregateContent,
  effects: [aggregateEffect, priceEffect],
  checkNew(content) {
    const reason = whyTooLarge(content) ?? whyGrantless(content);
    if (reason !== undefined) throw new AppError('INVALID_CONTENT', reason);
  },
  accept(message, given) {
    const { key, content, address } = given;
    const owner = ownerOf(message.sender, { address });
    if (key === SECURITY_KEY && owner !== message.sender)
      throw new AppError('NOT_PERMITTED', `only its owner may write the aggregate ${SECURITY_KEY}`);
    const reason = whyTooLarge(given);
    return {
      subject: aggregateSubject(owner, key),
      changes: [
        aggregateEffect.change({ key, content }),
        ...(key === PRICING_KEY ? [priceEffect.change(undefined)] : []),
      ],
      decide: () => (reason === undefined ? PROCESSED : rejected('INVALID_CONTENT', reason)),
    };
  },
});
