import { type TSchema, Type } from '../../type.ts';
import { VrfRequestBody } from '../../vrf/request.ts';
import { VrfAnswerView, VrfClaimBody, VrfKeyView, VrfVerdictView } from '../../vrf/views.ts';
import { type Api, NO_PARAMETERS } from '../operation.ts';
import { answersFromMemory } from './common/declare.ts';

/** A seed of the longest, written as JSON escapes, with the longest list of values, has some 30 kB. */
const BODY_BYTES_MAX = 64 * 1024;

/** What checks a body names its fields better than the schema does (parseVrfRequest, parseVrfClaim). */
const bodyOf = <S extends TSchema>(schema: S) =>
  ({ kind: 'json', schema, isStrict: true, limitBytes: BODY_BYTES_MAX }) as const;

const VrfKeysView = Type.Object(
  {
    node_address: Type.String({ description: 'signs their publication in the node registry' }),
    keys: Type.Array(VrfKeyView),
  },
  { title: 'VrfKeys' },
);

/** Verifiable random values (specification, "VRF"; docs/randomness.md). */
export const VRF_API = {
  generateRandom: {
    method: 'POST',
    path: '/api/v0/vrf/generate',
    summary: 'Generate random values with their proof; the same request returns the same values',
    rateClass: 'heavy',
    body: bodyOf(VrfRequestBody),
    answers: { 200: VrfAnswerView },
    errors: ['DATABASE_UNAVAILABLE'],
  },
  verifyRandom: {
    method: 'POST',
    path: '/api/v0/vrf/verify',
    summary: 'Verify that values follow from a seed, with the key of a known core node',
    rateClass: 'general',
    body: bodyOf(VrfClaimBody),
    answers: { 200: VrfVerdictView },
    errors: ['DATABASE_UNAVAILABLE'],
  },
  listVrfKeys: {
    method: 'GET',
    path: '/api/v0/vrf/keys',
    query: NO_PARAMETERS,
    summary: "List this node's keys for random values, current key first",
    ...answersFromMemory(),
    answers: { 200: VrfKeysView },
  },
} as const satisfies Api;
