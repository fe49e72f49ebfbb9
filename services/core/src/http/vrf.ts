import type { HttpServer } from '@skerry/kit';
import {
  parseVrfClaim,
  parseVrfRequest,
  VrfAnswerView,
  VrfClaimBody,
  VrfKeyView,
  VrfRequestBody,
  VrfVerdictView,
  viewOfVrfAnswer,
  viewOfVrfVerdict,
} from '@skerry/protocol';
import Type from 'typebox';
import { answersFromMemory, takesBody } from './declare.ts';
import type { Rooms } from './rooms.ts';

/** A seed of the longest, written as JSON escapes, with the longest list of values, has some 30 kB. */
const BODY_BYTES_MAX = 64 * 1024;

const jsonOf = (schema: object) => ({ contentType: 'application/json', schema });
const BODY_ERRORS = ['INVALID_PARAMETERS', 'UNKNOWN_FIELD'] as const;

/** Verifiable random values (specification, "VRF"; docs/randomness.md). */
export async function vrfRoutes(app: HttpServer, { randomness, nodeAddress }: Rooms): Promise<void> {
  app.post(
    '/vrf/generate',
    {
      schema: {
        summary: 'Random values with their proof; the same request has the same answer',
        response: { 200: VrfAnswerView },
      },
      config: takesBody('heavy', jsonOf(VrfRequestBody), ...BODY_ERRORS),
      bodyLimit: BODY_BYTES_MAX,
    },
    async (request) => viewOfVrfAnswer(randomness.generate(parseVrfRequest(request.body))),
  );

  app.post(
    '/vrf/verify',
    {
      schema: {
        summary: 'Whether values follow from a seed, by the key of a known core node',
        response: { 200: VrfVerdictView },
      },
      config: takesBody('general', jsonOf(VrfClaimBody), ...BODY_ERRORS),
      bodyLimit: BODY_BYTES_MAX,
    },
    async (request) => viewOfVrfVerdict(await randomness.verify(parseVrfClaim(request.body))),
  );

  app.get(
    '/vrf/keys',
    {
      schema: {
        summary: "This node's keys for random values, the one in use first",
        response: {
          200: Type.Object({
            node_address: Type.String({ description: 'signs their publication in the node registry' }),
            keys: Type.Array(VrfKeyView),
          }),
        },
      },
      config: answersFromMemory(),
    },
    async () => ({ node_address: nodeAddress, keys: [...randomness.keys] }),
  );
}
