import type { VrfKeyView } from '@skerry/protocol';

/**
 * The keys that known core nodes have published. A retired key stays known: what was answered by it stays true. When an
 * answer was made, a token does not say, so `from` and `until` are for people.
 */
export interface KnownVrfKeys {
  find(suite: string, publicKey: string): Promise<VrfKeyView | undefined>;
}

/** Known is what one list holds, such as a node's own keys. */
export function knownFromList(keys: readonly VrfKeyView[]): KnownVrfKeys {
  return {
    find: async (suite, publicKey) => keys.find((one) => one.suite === suite && one.public_key === publicKey),
  };
}
