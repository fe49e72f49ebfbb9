/** How many of something each key has, up to a limit. Keys without any take no room. */
export class Counts<Key = string> {
  readonly #counts = new Map<Key, number>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: Key): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Counts one more; false, and not counted, where that is one too many. */
  enter(key: Key): boolean {
    const count = this.get(key);
    if (count >= this.#limit) return false;
    this.#counts.set(key, count + 1);
    return true;
  }

  leave(key: Key): void {
    const count = this.get(key) - 1;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}

const IPV4 = /^[0-9.]+$/;
const IPV4_MAPPED = /^::ffff:([0-9.]+)$/;
const PREFIX_GROUPS = 4;

/** What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, which one site has; so written that networkKeyOf finds its network. */
export function clientKey(address: string | undefined): string {
  if (address === undefined) return '';
  if (IPV4.test(address)) return address;
  const mapped = IPV4_MAPPED.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [left = '', right] = address.split('%', 1)[0]!.split('::') as [string?, string?];
  const groups = (part: string | undefined) => (part ? part.split(':') : []);
  const [before, after] = [groups(left), groups(right)];
  const zeros = right === undefined ? 0 : Math.max(0, 2 * PREFIX_GROUPS - before.length - after.length);
  return `${[...before, ...Array.from({ length: zeros }, () => '0'), ...after].slice(0, PREFIX_GROUPS).join(':')}::/64`;
}
