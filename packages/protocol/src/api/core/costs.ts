import { RESOURCE_KINDS } from '../../credit/prices.ts';
import { PRICED_TYPES } from '../../network-form/estimate.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, defaulted, NO_PARAMETERS, orNull } from '../operation.ts';
import { asDeployed, reads } from './common/declare.ts';
import { flag } from './common/flag.ts';
import { numberedPageQuery } from './common/pagination.ts';
import { Address, digits } from './credits.ts';

const strict = { additionalProperties: false } as const;
const perSecond = (description: string) =>
  Type.String({ description: `${description}, credits per second with 18 decimals` });

/** Everything is paid by credit: what deployed nodes say of tokens that are held or streamed is zero. */
const rates = {
  cost_hold: perSecond('tokens to hold: none'),
  cost_stream: perSecond('tokens that flow: none'),
  cost_credit: perSecond('what it costs'),
};

/** Nodes of earlier releases do not tell it. */
const consumedNano = Type.Optional(digits('billionths of a credit so far'));

/** The names of deployed nodes, of those that cost something here. */
const CostPart = Type.Object(
  {
    type: Type.Enum(
      ['EXECUTION', 'EXECUTION_INSTANCE_VOLUME_ROOTFS', 'EXECUTION_VOLUME_PERSISTENT', 'STORAGE'],
      {
        description:
          "compute units; disk of an instance beyond what they include; a program's volumes; a file",
      },
    ),
    name: Type.String(),
    ...rates,
    size_mib: orNull(Type.Number(), { description: 'of storage, where `include_size` asks for it' }),
  },
  { title: 'CostPart' },
);
export type CostPart = Static<typeof CostPart>;

export const CostView = Type.Object(
  {
    item_hash: Type.String(),
    owner: Type.String(),
    type: Type.Enum([...RESOURCE_KINDS]),
    payment_type: Type.Literal('credit'),
    compute_units: Type.Integer(),
    size_mib: Type.Integer({ description: 'storage beyond what the compute units include' }),
    ...rates,
    cost_credit_nano: digits('billionths of a credit per second'),
    consumed_credits: Type.Integer({ description: 'whole credits so far' }),
    consumed_credits_nano: consumedNano,
    created: Type.Integer({ description: 'Unix seconds' }),
    detail: Type.Optional(Type.Array(CostPart, { description: 'with `include_details=2`' })),
  },
  { title: 'Cost' },
);
export type CostView = Static<typeof CostView>;

const PAYMENTS = ['credit', 'hold', 'superfluid'] as const;

const CostsView = Type.Object(
  {
    summary: Type.Object({
      total_consumed_credits: Type.Integer(),
      total_cost_hold: Type.String(),
      total_cost_stream: Type.String(),
      total_cost_credit: Type.String({ description: 'credits per second, of all pages' }),
      resource_count: Type.Integer(),
    }),
    filters: Type.Object({
      address: orNull(Type.String()),
      item_hash: orNull(Type.String()),
      payment_type: Type.Enum([...PAYMENTS]),
    }),
    resources: Type.Optional(Type.Array(CostView, { description: 'with `include_details` of 1 or 2' })),
    pagination_page: Type.Optional(Type.Integer()),
    pagination_per_page: Type.Optional(Type.Integer()),
    pagination_total: Type.Optional(Type.Integer()),
    pagination_item: Type.Optional(Type.String()),
  },
  { title: 'Costs' },
);

export const PriceView = Type.Object(
  {
    required_tokens: Type.Number({ description: 'always 0: no tokens need to be held' }),
    payment_type: Type.Literal('credit'),
    cost: perSecond('all parts'),
    detail: Type.Array(CostPart),
    charged_address: Type.String({ description: 'whose credit pays for it' }),
  },
  { title: 'Price' },
);
export type PriceView = Static<typeof PriceView>;

const RecalculatedView = Type.Object(
  {
    message: Type.String(),
    recalculated_count: Type.Integer({ description: 'messages whose cost was changed: none, ever' }),
    total_messages: Type.Integer({ description: 'messages that cost something' }),
    pricing_changes_found: Type.Integer({ description: 'how often the prices changed' }),
  },
  { title: 'Recalculated' },
);

const include_size = flag('whether sizes are told, in `size_mib`');

const ItemHash = Type.String({ description: 'the item hash of a message' });
const ItemParams = Type.Object({ item_hash: ItemHash });
const COSTS_MAX = 1_000;
const ITEM_CONTENT_CHARS = 200_000;

const ESTIMATE_ERRORS = ['INVALID_CONTENT', 'UNKNOWN_FIELD', 'FILE_NOT_FOUND', 'CONTENT_NOT_FOUND'] as const;

/** A message of the network form that is not signed yet; more of its fields are ignored. */
const UnsignedMessage = Type.Object({
  type: Type.Enum([...PRICED_TYPES]),
  item_hash: Type.Optional(orNull(ItemHash)),
  item_type: Type.Optional(orNull(Type.String())),
  item_content: Type.Optional(
    orNull(Type.String({ maxLength: 2 * ITEM_CONTENT_CHARS, description: 'the content as JSON' })),
  ),
});

const RECALCULATION = {
  rateClass: 'heavy',
  errors: ['DATABASE_UNAVAILABLE', 'CREDENTIAL_REQUIRED', 'CREDENTIAL_REFUSED'],
} as const;

/** What things cost, and what they would (docs/credit.md, "What things cost"); the paths are those of deployed nodes. */
export const COSTS_API = {
  listCosts: {
    method: 'GET',
    path: '/api/v0/costs',
    summary: 'Get the cost of instances, programs and files, in total and each, newest first',
    ...reads('INVALID_ADDRESS', 'INVALID_HASH', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    query: Type.Object(
      {
        address: Type.Optional(Address),
        item_hash: Type.Optional(ItemHash),
        payment_type: defaulted(
          Type.Enum([...PAYMENTS], { description: 'how they are paid: all of them by credit' }),
          'credit',
        ),
        include_details: defaulted(
          Type.Integer({
            minimum: 0,
            maximum: 2,
            description: '0: the total; 1: each resource too; 2: each with its parts',
          }),
          0,
        ),
        include_size,
        pagination: defaulted(
          Type.Integer({ minimum: 1, maximum: COSTS_MAX, description: 'how many on a page' }),
          100,
        ),
        page: numberedPageQuery.page,
      },
      strict,
    ),
    answers: { 200: CostsView },
    deployed: { differs: 'everything is paid by credit; `pagination` may be less than 10' },
  },
  getCost: {
    method: 'GET',
    path: '/api/v0/price/:item_hash',
    summary: 'Get the cost of an instance, a program or a file',
    ...reads('INVALID_HASH', 'COST_NOT_FOUND', 'MESSAGE_FORGOTTEN'),
    ...asDeployed,
    params: ItemParams,
    query: Type.Object({ include_size }, strict),
    answers: { 200: PriceView },
    deployed: {
      differs:
        '404 for a message that costs nothing or is pending, where deployed nodes answer 400 and 102; the price follows the credit rules',
    },
  },
  estimateCost: {
    method: 'POST',
    path: '/api/v0/price/estimate',
    summary: 'Estimate the cost of a message before sending it',
    ...reads(...ESTIMATE_ERRORS),
    ...asDeployed,
    body: {
      kind: 'json',
      schema: Type.Object({ message: UnsignedMessage }),
    },
    answers: { 200: PriceView },
    deployed: { differs: 'the content must be inline; the price follows the credit rules' },
  },
  estimateInstanceCost: {
    method: 'POST',
    path: '/api/v0/price/estimate/instance',
    summary: 'Estimate the cost of an instance before creating it',
    ...reads('INVALID_CONTENT', 'UNKNOWN_FIELD'),
    ...asDeployed,
    body: {
      kind: 'json',
      schema: Type.Record(Type.String(), Type.Unknown(), {
        description: 'the content of an INSTANCE of the network form',
      }),
    },
    answers: { 200: PriceView },
    deployed: { differs: 'the price follows the credit rules' },
  },
  recalculateCosts: {
    method: 'POST',
    path: '/api/v0/price/recalculate',
    summary: "Apply the publishers' current prices again; for the node's operator (X-Auth-Token)",
    ...RECALCULATION,
    answers: { 200: RecalculatedView },
    deployed: {
      differs:
        'costs are computed from messages and never stored, so no cost ever changes; only the holder of the operator token may ask',
    },
  },
  recalculateCost: {
    method: 'POST',
    path: '/api/v0/price/:item_hash/recalculate',
    summary: "Apply current prices again for one message; for the node's operator (X-Auth-Token)",
    rateClass: 'heavy',
    errors: [...RECALCULATION.errors, 'INVALID_HASH', 'COST_NOT_FOUND'],
    params: ItemParams,
    answers: { 200: RecalculatedView },
    deployed: { differs: 'as `POST /price/recalculate`' },
  },
  getConsumedCredits: {
    method: 'GET',
    path: '/api/v0/messages/:hash/consumed_credits',
    query: NO_PARAMETERS,
    summary: 'Get the credits that an instance, a program or a file has used so far',
    ...reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    params: Type.Object({ hash: ItemHash }),
    answers: {
      200: Type.Object({
        item_hash: Type.String(),
        consumed_credits: Type.Integer(),
        consumed_credits_nano: consumedNano,
      }),
    },
    deployed: { differs: '404 where the message is unknown' },
  },
} as const satisfies Api;
