import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf, PRINTABLE } from './on-behalf.ts';
import { AUTHORIZATIONS, SECURITY_KEY } from './permissions.ts';

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

/**
 * Why one element is more than it may be, beside its form; undefined where it is not. A client is refused it; of what nodes pass on it is
 * a matter of the verdict, so that all have the same messages.
 */
export function whyTooLarge({ key, content }: Pick<AggregateContent, 'key' | 'content'>): string | undefined {
  const fields = Object.keys(content).length;
  if (fields > LIMITS.aggregateFields)
    return `content.content has ${fields} members; one message may have ${LIMITS.aggregateFields}, and others the rest`;
  if (key !== SECURITY_KEY || !Object.hasOwn(content, AUTHORIZATIONS)) return undefined;
  const chars = JSON.stringify(content[AUTHORIZATIONS]).length;
  if (chars <= LIMITS.authorizationsChars) return undefined;
  return `content.content.${AUTHORIZATIONS} has ${chars} characters as compact JSON, and may have ${LIMITS.authorizationsChars}`;
}

const parseShape = createParser(AggregateContent, 'content');

export function parseAggregateContent(value: unknown): AggregateContent {
  const content = parseShape(value);
  checkAggregateValue(content.content);
  return content;
}
