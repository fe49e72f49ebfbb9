import { LIMITS } from '../../limits.ts';
import { HASH64_PATTERN } from '../../network-form/item-hash.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, orNull } from '../operation.ts';
import { answersFromMemory } from './common/declare.ts';

/** Where whoever wants to be reached answers, with the nonce and nothing else. The node that tries it is not told the nonce there. */
export const REACHABILITY_PATH = '/.well-known/skerry-reachable';
/** The nonce, and whatever line end a server adds. */
export const REACHABILITY_ANSWER_BYTES = 128;

const ReachabilityBody = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        maxLength: LIMITS.urlChars,
        description: 'where to connect to: a name or address that leads to where the request comes from',
      }),
    ),
    ipv6_prefix: Type.Optional(
      Type.String({ maxLength: 64, description: 'a /64: its own address of a compute node is tried' }),
    ),
    nonce: Type.String({ pattern: HASH64_PATTERN, description: `what answers at ${REACHABILITY_PATH}` }),
  },
  { additionalProperties: false },
);

const ReachabilityView = Type.Object(
  {
    verdict: Type.Enum(
      [
        'REACHED',
        'OTHER_ANSWER',
        'NO_CONNECTION',
        'NO_ANSWER',
        'BAD_CERTIFICATE',
        'NOT_YOURS',
        'NOT_PUBLIC',
        'UNKNOWN_CLIENT',
      ],
      {
        description:
          'REACHED: the nonce was answered; OTHER_ANSWER: something else answered; NOT_YOURS: the URL does not lead to where the request comes from; NOT_PUBLIC: this node tries only public addresses; UNKNOWN_CLIENT: a proxy hides who asks. Of a prefix, whatever failed is NO_ANSWER',
      },
    ),
    seen_as: orNull(Type.String({ description: 'the address that the request comes from' })),
  },
  { title: 'Reachability' },
);
export type ReachabilityView = Static<typeof ReachabilityView>;
export type ReachabilityVerdict = ReachabilityView['verdict'];

/** How others see whoever asks (docs/security.md, "What addresses can a stranger make a service contact?"). */
export const REACHABILITY_API = {
  checkReachability: {
    method: 'POST',
    path: '/api/v0/reachability',
    summary: 'Have the node connect to the caller, and say whether it got through',
    tag: 'node',
    ...answersFromMemory('OVERLOADED', 'INVALID_ADDRESS'),
    rateClass: 'heavy',
    body: { kind: 'json', schema: ReachabilityBody, isStrict: true, limitBytes: 8 * 1024 },
    answers: { 200: ReachabilityView },
  },
} as const satisfies Api;
