import { AggregateKey, AggregateValue, checkAggregateValue } from '../../content/aggregate.ts';
import { createParser } from '../../schema.ts';
import { type Static, Type } from '../../type.ts';
import { head, strict } from './base.ts';

export const NetworkAggregateContent = Type.Object(
  {
    ...head,
    key: Type.Union([AggregateKey, Type.Object({ name: AggregateKey }, strict)]),
    content: AggregateValue,
  },
  strict,
);
export type NetworkAggregateContent = Static<typeof NetworkAggregateContent>;

const parseShape = createParser(NetworkAggregateContent, 'content');

export function parseNetworkAggregateContent(value: unknown): NetworkAggregateContent {
  const content = parseShape(value);
  checkAggregateValue(content.content);
  return content;
}
