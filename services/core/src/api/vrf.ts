import type { Handlers } from '@skerry/kit';
import { parseVrfClaim, parseVrfRequest, viewOfVrfAnswer, viewOfVrfVerdict } from '@skerry/protocol';
import type { VRF_API } from '@skerry/protocol/api/core/vrf';
import type { Rooms } from './rooms.ts';

/** Verifiable random values (specification, "VRF"; docs/randomness.md). */
export const vrfHandlers = ({
  randomness,
  nodeAddress,
}: Pick<Rooms, 'randomness' | 'nodeAddress'>): Handlers<typeof VRF_API> => ({
  generateRandom: ({ body }) => viewOfVrfAnswer(randomness.generate(parseVrfRequest(body))),
  verifyRandom: async ({ body }) => viewOfVrfVerdict(await randomness.verify(parseVrfClaim(body))),
  listVrfKeys: () => ({ node_address: nodeAddress, keys: [...randomness.keys] }),
});
