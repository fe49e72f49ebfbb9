import { type Static, Type } from '../type.ts';
import { type Api, defaulted } from './operation.ts';

const LIST_MAX = 1_000;
const LIST_USUAL = 20;

const Reasons = Type.Array(
  Type.Object({
    reason: Type.String({
      description:
        'the protocol (`tls`, `quic`, `http`) and what became of the connection or request, as /metrics has it: `tls_unknown_name`, `quic_stray`, `http_invalid_host`',
    }),
    count: Type.Integer(),
  }),
  { description: 'the most frequent first' },
);

/** Whom a gateway refused lately. */
export const RefusalsView = Type.Object(
  {
    since: Type.Integer({ description: 'when what is counted began, Unix seconds: at most ten minutes ago' }),
    networks: Type.Array(
      Type.Object({
        network: Type.String({
          description: 'an IPv4 /24 or an IPv6 /48; of QUIC, where the address may be forged',
        }),
        count: Type.Integer({
          description: 'connections, requests and, of QUIC, datagrams without a connection',
        }),
        reasons: Reasons,
      }),
      { description: 'those with most refusals, the first of them first' },
    ),
    others: Type.Object({ count: Type.Integer(), reasons: Reasons }, { description: 'all other networks' }),
  },
  { title: 'Refusals' },
);
export type RefusalsView = Static<typeof RefusalsView>;

/** What an operator asks of a gateway at night. */
export const REFUSALS_API = {
  listRefusals: {
    method: 'GET',
    path: '/api/refusals',
    rateClass: 'general',
    summary:
      'List the networks whose clients were refused most in the last minutes, and why (Authorization: Bearer API_KEY)',
    tag: 'node',
    query: Type.Object(
      {
        limit: defaulted(
          Type.Integer({ minimum: 1, maximum: LIST_MAX, description: 'how many networks' }),
          LIST_USUAL,
        ),
      },
      { additionalProperties: false },
    ),
    answers: { 200: RefusalsView },
    errors: ['CREDENTIAL_REQUIRED', 'CREDENTIAL_REFUSED'],
  },
} as const satisfies Api;
