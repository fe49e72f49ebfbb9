import { LIMITS } from '../../../limits.ts';
import { type Static, Type } from '../../../type.ts';
import { type Api, defaulted } from '../../operation.ts';
import { bodiesQuery } from '../common/bodies.ts';
import { fromTime, toTime } from '../common/dates.ts';
import { asDeployed, reads } from '../common/declare.ts';
import { MESSAGE_FILTERS, POST_FILTERS, queryOf } from '../common/filters.ts';
import { flag } from '../common/flag.ts';
import {
  deployedPageQuery,
  deployedPaginationView,
  networkPageQuery,
  networkPaginationView,
  networkPathQuery,
} from '../common/pagination.ts';
import { LIST_ERRORS, NetworkMessageView, NetworkPostView } from '../messages.ts';

export const sortBy = defaulted(
  Type.Enum(['time', 'tx-time'], {
    description: 'tx-time: when a chain first confirmed it; unconfirmed messages count as the newest',
  }),
  'time',
);

/** Lists of messages leave contents out where they are asked to. */
export const contentFormat = {
  contentFormat: Type.Optional(
    Type.Enum(['full', 'headers', 'none'], {
      description: '`content` whole (where this is left out), reduced to what it is about, or left out',
    }),
  ),
  excludeContent: flag('the older word for `contentFormat=none`'),
};

const messageQuery = { ...queryOf(MESSAGE_FILTERS, '/messages.json'), sortBy, ...contentFormat };
const postQuery = { ...queryOf(POST_FILTERS, '/posts.json'), sortBy };
const strict = { additionalProperties: false } as const;

const Messages = Type.Object({ messages: Type.Array(NetworkMessageView), ...networkPaginationView });
const Posts = Type.Object({ posts: Type.Array(NetworkPostView), ...networkPaginationView });

export const PostView = Type.Object(
  {
    item_hash: Type.String({ description: 'the latest amend, or the post itself' }),
    content: Type.Unknown(),
    original_item_hash: Type.String(),
    original_type: Type.Union([Type.String(), Type.Null()]),
    address: Type.String({ description: 'owner' }),
    ref: Type.Union([Type.String(), Type.Null()]),
    channel: Type.Union([Type.String(), Type.Null()]),
    created: Type.String({ format: 'date-time' }),
    last_updated: Type.String({ format: 'date-time' }),
  },
  { title: 'Post' },
);
export type PostView = Static<typeof PostView>;
const BriefPosts = Type.Object({ posts: Type.Array(PostView), ...networkPaginationView });

const PageParams = Type.Object({
  page: Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, description: 'the page, from 1' }),
});

const list = { method: 'GET', tag: 'messages', ...reads(...LIST_ERRORS), ...asDeployed } as const;

/** Lists of messages and posts as deployed nodes have them (docs/decisions.md 12). */
export const NETWORK_LISTS_API = {
  listNetworkMessages: {
    ...list,
    path: '/api/v0/messages.json',
    summary: 'List messages in the network form',
    query: Type.Object({ ...messageQuery, ...networkPageQuery, bodies: bodiesQuery }, strict),
    answers: { 200: Messages },
    deployed: {
      differs:
        'a page has at most 10,000 messages, even if `pagination` is 0; the rest are on the next pages',
    },
  },
  listNetworkMessagesOfPage: {
    ...list,
    path: '/api/v0/messages/page/:page.json',
    summary: 'The same list, with the page number in the path',
    params: PageParams,
    query: Type.Object({ ...messageQuery, ...networkPathQuery }, strict),
    answers: { 200: Messages },
    deployed: {},
  },
  listMessageHashes: {
    ...list,
    path: '/api/v0/messages/hashes',
    summary: 'List message hashes with their statuses, ordered by time',
    query: Type.Object(
      {
        status: Type.Optional(
          Type.Enum(['processed', 'pending', 'rejected', 'forgotten', 'removing', 'removed'], {
            description: 'only resources with this status',
          }),
        ),
        startDate: fromTime,
        endDate: toTime,
        sortOrder: networkPageQuery.sortOrder,
        hash_only: flag('no: each with its status and when it was received', true),
        ...deployedPageQuery(LIMITS.pageSizeDefault),
      },
      strict,
    ),
    answers: {
      200: Type.Object({
        hashes: Type.Array(
          Type.Union([
            Type.String(),
            Type.Object({
              item_hash: Type.String(),
              status: Type.String(),
              reception_time: Type.String({ format: 'date-time' }),
            }),
          ]),
        ),
        ...deployedPaginationView,
        pagination_item: Type.Literal('hashes'),
      }),
    },
    deployed: {},
  },
  listNetworkPosts: {
    ...list,
    path: '/api/v0/posts.json',
    summary: 'List posts with their latest amends applied, last changed first',
    query: Type.Object({ ...postQuery, ...networkPageQuery }, strict),
    answers: { 200: Posts },
    deployed: {
      differs: 'a page has at most 10,000 posts, even if `pagination` is 0; the rest are on the next pages',
    },
  },
  listNetworkPostsOfPage: {
    ...list,
    path: '/api/v0/posts/page/:page.json',
    summary: 'The same list, with the page number in the path',
    params: PageParams,
    query: Type.Object({ ...postQuery, ...networkPathQuery }, strict),
    answers: { 200: Posts },
    deployed: {},
  },
  listBriefPosts: {
    ...list,
    path: '/api/v1/posts.json',
    summary: 'List posts with only their content and dates',
    query: Type.Object({ ...postQuery, ...networkPageQuery }, strict),
    answers: { 200: BriefPosts },
    deployed: {},
  },
  listBriefPostsOfPage: {
    ...list,
    path: '/api/v1/posts/page/:page.json',
    summary: 'The same list, with the page number in the path',
    params: PageParams,
    query: Type.Object({ ...postQuery, ...networkPathQuery }, strict),
    answers: { 200: BriefPosts },
    deployed: {},
  },
} as const satisfies Api;
