const TEXT = 0x81;
/** Longer texts have their length in the two bytes that follow, or the eight (RFC 6455, 5.2). */
const SHORT_MAX = 125;
const MEDIUM_MAX = 0xffff;
const MEDIUM = 126;
const LONG = 127;

/** A text as one whole frame of a server: the same bytes for every reader. */
export function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const head = length <= SHORT_MAX ? 2 : length <= MEDIUM_MAX ? 4 : 10;
  const frame = Buffer.allocUnsafeSlow(head + length);
  frame[0] = TEXT;
  if (head === 2) frame[1] = length;
  else if (head === 4) {
    frame[1] = MEDIUM;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = LONG;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, head);
  return frame;
}
