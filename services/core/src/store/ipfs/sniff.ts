/** The content type of bytes by how they begin; nobody says it of a CID. */

const MAGIC: readonly (readonly [string, string, number?])[] = [
  ['89504e470d0a1a0a', 'image/png'],
  ['ffd8ff', 'image/jpeg'],
  ['474946383761', 'image/gif'],
  ['474946383961', 'image/gif'],
  ['57454250', 'image/webp', 8],
  ['25504446', 'application/pdf'],
  ['504b0304', 'application/zip'],
  ['1f8b', 'application/gzip'],
  ['28b52ffd', 'application/zstd'],
  ['68737173', 'application/vnd.squashfs'],
  ['0061736d', 'application/wasm'],
  ['66747970', 'video/mp4', 4],
  ['1a45dfa3', 'video/webm'],
  ['4f676753', 'audio/ogg'],
  ['494433', 'audio/mpeg'],
  ['57415645', 'audio/wav', 8],
  ['514649fb', 'application/x-qemu-disk'],
];

/** How many bytes `sniffType` looks at. */
export const SNIFFED_BYTES = 512;

const BYTES = 'application/octet-stream';

/** @param start the first bytes, up to SNIFFED_BYTES */
export function sniffType(start: Uint8Array): string {
  const hex = Buffer.from(start.subarray(0, 16)).toString('hex');
  const found = MAGIC.find(([magic, , at = 0]) => hex.startsWith(magic, at * 2));
  if (found) return found[1];
  if (start.length === 0) return BYTES;
  // Control characters that no text has.
  if (start.some((byte) => byte < 9 || (byte > 13 && byte < 32) || byte === 127)) return BYTES;
  let text: string;
  try {
    // A character may be cut off at the end.
    text = new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true }).trimStart();
  } catch {
    return BYTES;
  }
  if (/^<(!doctype html|html|head|body)\b/i.test(text)) return 'text/html';
  if (/^(<\?xml[^>]*>\s*)?<svg\b/i.test(text)) return 'image/svg+xml';
  return /^[[{]/.test(text) ? 'application/json' : 'text/plain; charset=utf-8';
}
