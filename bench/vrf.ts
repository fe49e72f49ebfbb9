import { parseVrfRequest, pureVrfEngine, type VrfEngine } from '@skerry/protocol';
import { loadNativeVrfEngine, loadSodium, type Sodium } from '../packages/protocol/src/vrf/native.ts';
import { VRF_SUITES } from '../packages/protocol/src/vrf/suites.ts';
import { createVrfAnswer, verifyVrfToken } from '../packages/protocol/src/vrf/token.ts';
import type { Figures } from './measure/figures.ts';
import { compare } from './measure/rounds.ts';

const BYTES = 32;
/** Inputs in turn, since how often a point is tried for depends on them. */
const INPUTS = 256;
const GOAL = { of: 'ratio', least: 0.7 } as const;

/** Group operations of libsodium that no proof and no verification can do without, and nothing else. */
function createOperations(sodium: Sodium) {
  const scalar = new Uint8Array(BYTES).fill(0x37);
  scalar[31] = 0x07;
  const point = new Uint8Array(BYTES);
  sodium.crypto_scalarmult_ed25519_base_noclamp(point, scalar);
  const result = new Uint8Array(BYTES);
  const repeat = (times: number, operation: () => void) => {
    for (let i = 0; i < times; i++) operation();
  };
  return (points: number, additions = 0) => {
    repeat(points, () => sodium.crypto_scalarmult_ed25519_noclamp(result, scalar, point));
    sodium.crypto_scalarmult_ed25519_base_noclamp(result, scalar);
    repeat(additions, () => sodium.crypto_core_ed25519_add(result, point, point));
  };
}

type Suite = (typeof VRF_SUITES)[keyof typeof VRF_SUITES];

function benchSuite(
  figures: Figures,
  suite: Suite,
  native: VrfEngine,
  limit: ReturnType<typeof createOperations>,
): void {
  const secretKey = new Uint8Array(BYTES).fill(1);
  const ecvrf = native.find(suite.id)!;
  const prover = ecvrf.createProver(secretKey);
  const pureProver = pureVrfEngine.find(suite.id)!.createProver(secretKey);
  const alphas = Array.from({ length: INPUTS }, (_, i) => new Uint8Array(60).fill(i));
  const proofs = alphas.map((alpha) => prover.prove(alpha).proof);
  const requests = alphas.map((_, i) => parseVrfRequest({ seed: `draw ${i}`, min: 1, max: 100 }));
  const answers = requests.map((request) => createVrfAnswer(request, prover));
  let turn = 0;
  const next = () => {
    turn = (turn + 1) % INPUTS;
    return turn;
  };
  const verify = (at: number) => ecvrf.verify(prover.publicKey, alphas[at]!, proofs[at]!);
  compare(figures, `${suite.name}: proving`, [
    { name: 'limit: 2 multiplications of a point, 1 of the base', run: () => limit(2) },
    { name: 'the same, with the 6 doublings', run: () => limit(2, 6) },
    { name: 'a proof and its output', goal: GOAL, run: () => prover.prove(alphas[next()]!) },
    { name: 'a whole answer, as the node gives it', run: () => createVrfAnswer(requests[next()]!, prover) },
    { name: 'a proof with the pure engine', run: () => pureProver.prove(alphas[next()]!) },
  ]);
  compare(figures, `${suite.name}: verifying`, [
    { name: 'limit: 3 multiplications of a point, 1 of the base', run: () => limit(3) },
    { name: 'the same, with 6 doublings and 2 subtractions', run: () => limit(3, 8) },
    { name: 'a verification and its output', goal: GOAL, run: () => verify(next()) },
    { name: 'a whole token', run: () => verifyVrfToken(answers[next()]!, native) },
    { name: 'a whole token with the pure engine', run: () => verifyVrfToken(answers[next()]!) },
  ]);
}

/**
 * Proofs and verifications against the scalar multiplications of libsodium that they cannot do without. A proof needs
 * x*H, k*H and k*B. A verification needs s*B - c*Y and s*H - c*Gamma: s*B, c*Y, s*H, c*Gamma. The RFC's other group
 * operations, 8*H and 8*Gamma (three doublings each) and the two subtractions, make a second limit: libsodium takes and
 * gives points encoded, so that a doubling costs an eighth of a multiplication. Finding H, decoding and hashes are in neither.
 */
export async function benchVrf(figures: Figures): Promise<void> {
  const [sodium, native] = await Promise.all([loadSodium(), loadNativeVrfEngine()]);
  if (!sodium || !native)
    throw new Error('this platform has no libsodium build; there is nothing to compare');
  const limit = createOperations(sodium);
  for (const suite of [VRF_SUITES.edwards25519Tai, VRF_SUITES.edwards25519Ell2])
    benchSuite(figures, suite, native, limit);
}
