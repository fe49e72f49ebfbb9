import { join } from 'node:path';
import {
  createVrfAnswer,
  hexToBytes,
  loadVrfEngine,
  VRF_SUITES,
  type VrfAnswer,
  type VrfClaim,
  type VrfEngine,
  type VrfKeyView,
  type VrfProver,
  type VrfRequest,
  type VrfVerdict,
  verifyVrfToken,
} from '@skerry/protocol';
import { KEY_FILES } from '../key-files.ts';
import { loadVrfKeys } from './key-file.ts';
import { type KnownVrfKeys, knownFromList } from './known-keys.ts';

export interface RandomnessOptions {
  readonly dataDir: string;
  /** Raised by one for a new key. */
  readonly epoch: number;
  readonly nowSeconds: number;
  /** What other nodes have published, beside this node's own keys. */
  readonly alsoKnown?: KnownVrfKeys;
}

/** Random values that anybody can check, by the node's own key. Keeps nothing: the same request has the same answer by itself. */
export class Randomness {
  readonly #engine: VrfEngine;
  readonly #prover: VrfProver;
  readonly #own: KnownVrfKeys;
  readonly #alsoKnown: KnownVrfKeys | undefined;
  /** This node's keys, the one in use first: what it publishes. */
  readonly keys: readonly VrfKeyView[];

  constructor(engine: VrfEngine, prover: VrfProver, keys: readonly VrfKeyView[], alsoKnown?: KnownVrfKeys) {
    this.#engine = engine;
    this.#prover = prover;
    this.#own = knownFromList(keys);
    this.#alsoKnown = alsoKnown;
    this.keys = keys;
  }

  generate(request: VrfRequest): VrfAnswer {
    return createVrfAnswer(request, this.#prover);
  }

  /** Valid only where the key is one that a known core node has published (docs/decisions.md 18). */
  async verify(claim: VrfClaim): Promise<VrfVerdict> {
    const verdict = verifyVrfToken(claim, this.#engine);
    if (!verdict.valid) return verdict;
    const { values: _, ...statement } = verdict;
    const { suite, publicKey } = statement;
    const known = (await this.#own.find(suite, publicKey)) ?? (await this.#alsoKnown?.find(suite, publicKey));
    if (known) return verdict;
    const message = `the proof is valid, but no known core node has published the key ${publicKey}`;
    return { ...statement, valid: false, reason: { code: 'VRF_KEY_UNKNOWN', message } };
  }
}

/** Reads the node's keys below its data directory, makes what is missing. */
export async function openRandomness(options: RandomnessOptions): Promise<Randomness> {
  const engine = await loadVrfEngine();
  const path = join(options.dataDir, KEY_FILES.vrf);
  const { current, retired } = await loadVrfKeys(path, engine, options.epoch, options.nowSeconds);
  const prover = engine.find(VRF_SUITES.edwards25519Tai.id)!.createProver(hexToBytes(current.secret_key)!);
  const { suite, public_key, from } = current;
  const keys = [
    { suite, public_key, from, until: null },
    ...retired.map(({ epoch: _, ...key }) => key).reverse(),
  ];
  return new Randomness(engine, prover, keys, options.alsoKnown);
}
