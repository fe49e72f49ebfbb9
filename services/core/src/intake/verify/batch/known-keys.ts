/** Keys that one thread remembers: about 5 MB. */
const KEYS_MAX = 20_000;

/** Address -> public key (65 bytes), of this node's own recovery alone; those used last are kept. */
export class KnownKeys {
  readonly #keys = new Map<string, Uint8Array>();

  get(address: string): Uint8Array | undefined {
    const key = this.#keys.get(address);
    if (key) {
      this.#keys.delete(address);
      this.#keys.set(address, key);
    }
    return key;
  }

  set(address: string, key: Uint8Array): void {
    this.#keys.set(address, key);
    if (this.#keys.size > KEYS_MAX) this.#keys.delete(this.#keys.keys().next().value!);
  }
}
