import { readFile } from 'node:fs/promises';
import { AppError } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';

export interface AutonomousSystem {
  readonly asn: number;
  readonly name: string | null;
}

export type FindSystem = (address: string) => AutonomousSystem | undefined;

const LINE = /^(\S+)[ \t]+(?:AS)?([0-9]{1,10})(?:[ \t]+(.*))?$/i;
const ASN_MAX = 0xffff_ffff;
const NAME_CHARS_MAX = 128;
const FILE_BYTES_MAX = 512 * 1024 ** 2;

/** An address as a number of its kind. */
function numberOf(address: ipaddr.IPv4 | ipaddr.IPv6): bigint {
  return BigInt(
    `0x${address
      .toByteArray()
      .map((byte) => byte.toString(16).padStart(2, '0'))
      .join('')}`,
  );
}

const WIDTH = { ipv4: 32, ipv6: 128 } as const;

/** The prefixes of one kind: by length, longest first, the network's leading bits to its system. */
class PrefixTable {
  readonly #byLength = new Map<number, Map<bigint, AutonomousSystem>>();
  #lengths: number[] = [];
  readonly #width: number;

  constructor(width: number) {
    this.#width = width;
  }

  add(address: bigint, length: number, system: AutonomousSystem): void {
    let networks = this.#byLength.get(length);
    if (!networks) {
      networks = new Map();
      this.#byLength.set(length, networks);
      this.#lengths = [...this.#byLength.keys()].sort((a, b) => b - a);
    }
    networks.set(address >> BigInt(this.#width - length), system);
  }

  find(address: bigint): AutonomousSystem | undefined {
    for (const length of this.#lengths) {
      const system = this.#byLength.get(length)!.get(address >> BigInt(this.#width - length));
      if (system) return system;
    }
    return undefined;
  }
}

/**
 * Reads a table of prefixes: `PREFIX ASN NAME` on a line (`192.0.2.0/24 64500 Example`), `#` begins a comment. Of two
 * prefixes that hold an address, the longer one counts. Throws INVALID_CONFIG, naming the line.
 */
export function parseSystems(text: string): FindSystem {
  const tables = { ipv4: new PrefixTable(WIDTH.ipv4), ipv6: new PrefixTable(WIDTH.ipv6) };
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.replace(/#.*$/, '').trim();
    if (line === '') continue;
    const [, prefix, number, name] = LINE.exec(line) ?? [];
    const asn = Number(number);
    if (prefix === undefined || !ipaddr.isValidCIDR(prefix) || asn > ASN_MAX)
      throw new AppError('INVALID_CONFIG', `line ${index + 1} of the ASN table is not "PREFIX ASN NAME"`);
    const [address, length] = ipaddr.parseCIDR(prefix);
    tables[address.kind()].add(numberOf(address), length, {
      asn,
      name: name?.slice(0, NAME_CHARS_MAX) || null,
    });
  }
  return (text) => {
    if (!ipaddr.isValid(text)) return undefined;
    const address = ipaddr.process(text);
    return tables[address.kind()].find(numberOf(address));
  };
}

/** Throws INVALID_CONFIG. @param path of the table, or undefined: then no system is known */
export async function loadSystems(path: string | undefined): Promise<FindSystem> {
  if (path === undefined) return () => undefined;
  const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    const message = `cannot read the ASN table ${path}, which SKERRY_MONITOR_ASN_FILE names (${cause.code})`;
    throw new AppError('INVALID_CONFIG', message, { cause });
  });
  if (bytes.length > FILE_BYTES_MAX)
    throw new AppError(
      'INVALID_CONFIG',
      `the ASN table ${path} has ${bytes.length} bytes; it may have ${FILE_BYTES_MAX}`,
    );
  return parseSystems(bytes.toString('utf8'));
}
