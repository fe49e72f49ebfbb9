import type { Operation } from '@skerry/protocol/api/operation';

/** What parameters mean wherever they stand; a table that means something else says so itself. */
const PARAMETERS: Readonly<Record<string, string>> = {
  page: 'page number, from 1',
  limit: 'entries per page',
  cursor: 'continue after this position, from an earlier answer',
  hash: '64 hexadecimal digits',
  address: 'an address, in any spelling of its chain',
  key: 'the key of an aggregate',
  instance_id: 'item hash of the INSTANCE message',
  program_hash: 'item hash of the PROGRAM message',
  status: 'only those with this status',
  network: 'a network that the node indexes, such as ethereum',
  node_hash: 'the node, 64 hexadecimal digits',
  from_block: 'first block',
  to_block: 'last block, inclusive',
  from_timestamp: 'start time, inclusive, Unix seconds',
  to_timestamp: 'end time, inclusive, Unix seconds',
  startDate: 'only at or after this time, Unix seconds',
  endDate: 'only before this time, Unix seconds',
};

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

function parametersIn(place: Parameter['in'], schema: Operation['query']): Parameter[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description = PARAMETERS[name], ...rest }]) => ({
    name,
    in: place,
    // What has a default may be left out, whatever the type behind it says.
    required: place === 'path' || (required.includes(name) && rest.default === undefined),
    ...(description === undefined ? {} : { description: String(description) }),
    schema: rest,
  }));
}

export const parametersOf = ({ params, query }: Operation): Parameter[] => [
  ...parametersIn('path', params),
  ...parametersIn('query', query),
];

/** What documents call the rest of a path: readers of OpenAPI make a variable of it, which no `*` can be. */
export const REST_OF_PATH = 'path';

/** Parameters by the names that documents have. The server and the client know the rest of a path as `*`. */
export const shownParametersOf = (operation: Operation): Parameter[] =>
  parametersOf(operation).map((one) => (one.name === '*' ? { ...one, name: REST_OF_PATH } : one));
