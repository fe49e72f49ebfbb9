import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createSigner, type Signer } from '@skerry/client';
import { loadOrCreateKeyFile, loadOrCreateText, makeDirectory } from '@skerry/kit';
import { AppError, nodeIdOf, parseIpv6Prefix } from '@skerry/protocol';

/** Who this node is. Kept in the data directory: made once, then the same for ever. */
export interface Identity {
  readonly signer: Signer;
  readonly nodeId: string;
  /** The /64 that instances get addresses from. */
  readonly ipv6Prefix: string;
}

const KEY_FILE = 'node.key';
const PREFIX_FILE = 'ipv6-prefix';
/** Locally assigned unique local addresses: fd, then 40 random bits and a 16-bit subnet (RFC 4193). */
const ULA_RANDOM_BYTES = 7;

/**
 * @param givenPrefix the operator's /64; without it a random private one is made and kept
 * Throws INVALID_CONFIG when a kept or given value is damaged.
 */
export async function loadIdentity(dataDir: string, givenPrefix: string | undefined): Promise<Identity> {
  await makeDirectory(dataDir);
  const signer = createSigner(await loadOrCreateKeyFile(join(dataDir, KEY_FILE)));
  const kept = givenPrefix ?? (await loadOrCreateText(join(dataDir, PREFIX_FILE), randomUlaPrefix, 0o644));
  try {
    return { signer, nodeId: nodeIdOf(signer.address), ipv6Prefix: parseIpv6Prefix(kept) };
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `the IPv6 prefix: ${(error as Error).message}`, { cause: error });
  }
}

export function randomUlaPrefix(): string {
  const digits = `fd${randomBytes(ULA_RANDOM_BYTES).toString('hex')}`;
  return parseIpv6Prefix(`${digits.match(/.{4}/g)?.join(':')}::/64`);
}
