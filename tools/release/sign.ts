import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSigner } from '@skerry/client';
import { AppError, fieldsOf, parseEvmAddress, recoverPersonalSigner } from '@skerry/protocol';
import { CHECKSUMS, type Release, SIGNATURE } from './release.ts';

/** Without the last line break, which shells leave out: `cast wallet verify` takes what `$(cat SHA256SUMS)` gives. */
const signedText = (directory: string) => readFileSync(join(directory, CHECKSUMS), 'utf8').trimEnd();

/**
 * Signs the checksums (EIP-191) by the key of whoever makes the release. Gives the name of the file that it wrote.
 * @param keyFile a private key in hexadecimal, as `skerry key export` writes it
 */
export function signChecksums({ files }: Pick<Release, 'files'>, keyFile: string): string {
  const signer = createSigner(readFileSync(keyFile, 'utf8').trim());
  const { chain, address } = signer;
  const signed = { file: CHECKSUMS, chain, address, signature: signer.sign(signedText(files)) };
  writeFileSync(join(files, SIGNATURE), `${JSON.stringify(signed, null, 2)}\n`);
  return SIGNATURE;
}

/** The lines of SHA256SUMS. */
const LINE = /^([0-9a-f]{64}) {2}([^/]+)$/;

/**
 * Checks a release: who signed its checksums, and that every file is what they say.
 * @param by who has to have signed it; anybody where it is left out
 * @returns the address that signed. Throws INVALID_SIGNATURE, FILE_CORRUPT, or what the file system throws.
 */
export function verifyRelease(directory: string, by?: string): string {
  const { signature, address } = fieldsOf(JSON.parse(readFileSync(join(directory, SIGNATURE), 'utf8')));
  const text = signedText(directory);
  const signer = recoverPersonalSigner(text, String(signature).replace(/^0x/, ''));
  if (signer === undefined || signer !== parseEvmAddress(String(address)))
    throw new AppError(
      'INVALID_SIGNATURE',
      `${SIGNATURE} is no signature of ${String(address)} over ${CHECKSUMS}`,
    );
  if (by !== undefined && parseEvmAddress(by) !== signer)
    throw new AppError('INVALID_SIGNATURE', `it was signed by ${signer}, not by ${by}`);
  for (const line of text.split('\n')) {
    const [, sum, name] = LINE.exec(line) ?? [];
    const digest =
      name === undefined
        ? undefined
        : createHash('sha256')
            .update(readFileSync(join(directory, name)))
            .digest('hex');
    if (digest === undefined || digest !== sum)
      throw new AppError('FILE_CORRUPT', `${name ?? `the line "${line}"`} is not what ${CHECKSUMS} says`);
  }
  return signer;
}
