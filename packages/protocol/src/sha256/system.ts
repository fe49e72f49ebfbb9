const { hash } = process.getBuiltinModule('node:crypto');

/** Of bytes, or of a text in UTF-8. A message has several: in WebAssembly each takes four to six times as long. */
export const sha256Hex = (input: Uint8Array | string): string => hash('sha256', input, 'hex');
