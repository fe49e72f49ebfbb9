import type { Examples } from '../../operation.ts';
import { CORE_NODE, TIME } from '../values.ts';

const SUITE = 'ECVRF-EDWARDS25519-SHA512-TAI';
const REQUEST = { seed: 'a throw of dice', min: 1, max: 6, count: 3 };
const VALUES = [6, 3, 6];
const PUBLIC_KEY = 'd04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737';
const PROOF =
  '0x0103d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c97787370000000000000001000000000000000600031fef41d7d797ef192212e77a5edf559868a9f884b87b4d8d95a39963f147ea365bc171b5f8a0516b2c9bbdb0d07e441714fa428f10badfa478f83b7f3b599da66e5cd440b03e69158b4e209c1d57500c';

const { seed, ...range } = REQUEST;
const ANSWER = { ...REQUEST, value: VALUES[0], values: VALUES, proof: PROOF, public_key: PUBLIC_KEY };

export const VRF_EXAMPLES: Examples = {
  generateRandom: { body: REQUEST, answer: { ...ANSWER, status: 'success' } },
  verifyRandom: {
    body: { seed, values: VALUES, proof: PROOF },
    answer: {
      valid: true,
      status: 'success',
      suite: SUITE,
      public_key: PUBLIC_KEY,
      ...range,
      values: VALUES,
    },
  },
  listVrfKeys: {
    answer: {
      node_address: CORE_NODE.address,
      keys: [{ suite: SUITE, public_key: PUBLIC_KEY, from: TIME, until: null }],
    },
  },
};
