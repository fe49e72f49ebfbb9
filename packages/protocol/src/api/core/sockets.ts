import { Type } from '../../type.ts';
import { type Api, defaulted } from '../operation.ts';
import { answersFromMemory, asDeployed, reads } from './common/declare.ts';
import { MESSAGE_FILTERS, queryOf } from './common/filters.ts';
import { networkPageQuery } from './common/pagination.ts';
import { contentFormat, sortBy } from './deployed/lists.ts';

/** Messages from before that a socket may ask for. */
const HISTORY_MAX = 199;
const HISTORY_DEFAULT = 10;

const socket = (description: string) => ({ 101: { description, content: {} } });

/** The WebSockets of deployed nodes (RFC 6455; docs/api.md): what is refused is answered before the upgrade. */
export const SOCKETS_API = {
  watchMessages: {
    method: 'GET',
    path: '/api/ws0/messages',
    summary: 'Follow messages as they take effect, one text frame each, after recent history (WebSocket)',
    tag: 'messages',
    ...reads('UPGRADE_REQUIRED', 'INVALID_HASH', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    query: Type.Object(
      {
        ...queryOf(MESSAGE_FILTERS, '/messages.json'),
        history: defaulted(
          Type.Integer({
            minimum: 0,
            maximum: HISTORY_MAX,
            description: 'how many messages of the list to send before new ones, in reverse order',
          }),
          HISTORY_DEFAULT,
        ),
        ...contentFormat,
        sortBy,
        sortOrder: networkPageQuery.sortOrder,
      },
      { additionalProperties: false },
    ),
    answers: socket('a WebSocket: frames as the messages of `/messages.json`'),
    deployed: {},
  },
  watchStatus: {
    method: 'GET',
    path: '/api/ws0/status',
    summary: "Follow the node's own metrics as they change (WebSocket)",
    tag: 'node',
    ...answersFromMemory('UPGRADE_REQUIRED', 'OVERLOADED'),
    ...asDeployed,
    answers: socket('a WebSocket: frames as `/metrics.json`'),
    deployed: {},
  },
} as const satisfies Api;
