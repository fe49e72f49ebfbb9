import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf, PRINTABLE } from './on-behalf.ts';

export const AggregateKey = Type.String({
  minLength: 1,
  maxLength: LIMITS.aggregateKeyChars,
  pattern: PRINTABLE,
});

export const AggregateValue = Type.Record(Type.String(), Type.Unknown(), {
  description: 'merged into the aggregate, member by member; the later message wins',
});

/** AGGREGATE: a change of one of an address's named objects. */
export const AggregateContent = Type.Object(
  { key: AggregateKey, content: AggregateValue, address: Type.Optional(OnBehalfOf) },
  { additionalProperties: false },
);
export type AggregateContent = Static<typeof AggregateContent>;

/**
 * Members are merged by assignment somewhere, where `__proto__` would change an object's nature; and they are found by
 * their names, which therefore are short. Throws INVALID_CONTENT.
 */
export function checkAggregateValue(value: Readonly<Record<string, unknown>>): void {
  if (Object.hasOwn(value, '__proto__')) {
    throw new AppError('INVALID_CONTENT', 'content.content may not have a member "__proto__"');
  }
  if (Object.keys(value).some((name) => name.length > LIMITS.aggregateFieldChars)) {
    throw new AppError(
      'INVALID_CONTENT',
      `a member of content.content has a name of more than ${LIMITS.aggregateFieldChars} characters`,
    );
  }
}

const parseShape = createParser(AggregateContent, 'content');

export function parseAggregateContent(value: unknown): AggregateContent {
  const content = parseShape(value);
  checkAggregateValue(content.content);
  return content;
}
