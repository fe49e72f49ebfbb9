import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createSigner } from '@skerry/client';
import { CHECKSUMS, parseChecksums, SIGNATURE, signedTextOf, signerOf } from '@skerry/console';
import { AppError } from '@skerry/protocol';
import type { Release } from './release.ts';

const read = (directory: string, file: string) => readFileSync(join(directory, file), 'utf8');

/**
 * Signs the checksums (EIP-191) by the key of whoever makes the release. Gives the name of the file that it wrote.
 * @param keyFile a private key in hexadecimal, as `skerry key export` writes it
 */
export function signChecksums({ files }: Pick<Release, 'files'>, keyFile: string): string {
  const signer = createSigner(readFileSync(keyFile, 'utf8').trim());
  const { chain, address } = signer;
  const signed = {
    file: CHECKSUMS,
    chain,
    address,
    signature: signer.sign(signedTextOf(read(files, CHECKSUMS))),
  };
  writeFileSync(join(files, SIGNATURE), `${JSON.stringify(signed, null, 2)}\n`);
  return SIGNATURE;
}

/**
 * Checks a release: who signed its checksums, and that every file is what they say.
 * @param by who has to have signed it; anybody where it is left out
 * @returns the address that signed. Throws INVALID_SIGNATURE, FILE_CORRUPT, or what the file system throws.
 */
export function verifyRelease(directory: string, by?: string): string {
  const checksums = read(directory, CHECKSUMS);
  const signer = signerOf(checksums, read(directory, SIGNATURE), by);
  for (const [name, sum] of parseChecksums(checksums, CHECKSUMS)) {
    // Beside them, and nowhere else.
    const bytes = readFileSync(join(directory, basename(name)));
    if (createHash('sha256').update(bytes).digest('hex') !== sum)
      throw new AppError('FILE_CORRUPT', `${name} is not what ${CHECKSUMS} says`);
  }
  return signer;
}
