import { AppError, fieldsOf, parseEvmAddress, recoverPersonalSigner } from '@skerry/protocol';

/** The files of a release that say what is in it, and who says so. */
export const CHECKSUMS = 'SHA256SUMS';
export const SIGNATURE = 'SHA256SUMS.json';

/** A line as sha256sum(1) writes it. */
const LINE = /^([0-9a-f]{64}) {2}(\S.*)$/;

/** What is signed: without the last line break, which shells leave out. `cast wallet verify` takes what `$(cat SHA256SUMS)` gives. */
export const signedTextOf = (checksums: string): string => checksums.trimEnd();

/**
 * Checksums by the name of their file, in the order of the lines.
 * @param checksums lines of sha256sum(1)
 * @param name what they are called, for errors
 * @returns throws FILE_CORRUPT where a line is no checksum, or a file stands twice
 */
export function parseChecksums(checksums: string, name: string): ReadonlyMap<string, string> {
  const sums = new Map<string, string>();
  for (const line of signedTextOf(checksums).split('\n')) {
    const [, sum, file] = LINE.exec(line) ?? [];
    if (sum === undefined || file === undefined || sums.has(file))
      throw new AppError('FILE_CORRUPT', `${name} has a line that is no checksum of a file: "${line}"`);
    sums.set(file, sum);
  }
  return sums;
}

/**
 * Who signed the checksums of a release (EIP-191).
 * @param signature what SHA256SUMS.json says
 * @param by who has to have signed them; anybody where it is left out
 * @returns the address. Throws INVALID_SIGNATURE
 */
export function signerOf(checksums: string, signature: string, by?: string): string {
  const { signature: bytes, address } = fieldsOf(parseOr(signature));
  const signer = recoverPersonalSigner(signedTextOf(checksums), String(bytes).replace(/^0x/, ''));
  if (signer === undefined || signer !== parseEvmAddress(String(address)))
    throw new AppError(
      'INVALID_SIGNATURE',
      `${SIGNATURE} is no signature of ${String(address)} over ${CHECKSUMS}`,
    );
  if (by !== undefined && parseEvmAddress(by) !== signer)
    throw new AppError('INVALID_SIGNATURE', `it was signed by ${signer}, not by ${by}`);
  return signer;
}

function parseOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AppError('INVALID_SIGNATURE', `${SIGNATURE} is no JSON`);
  }
}
