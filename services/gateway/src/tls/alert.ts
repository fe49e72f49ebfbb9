const RECORD_TYPE_ALERT = 21;
const LEVEL_FATAL = 2;

/** RFC 8446 §6.2. */
export const ALERT = { decodeError: 50, internalError: 80, unrecognizedName: 112 } as const;

/**
 * A fatal alert as one plaintext record. The record version is TLS 1.2, which every version from 1.0 to 1.3 reads before a
 * version is agreed.
 */
export function alertRecord(description: (typeof ALERT)[keyof typeof ALERT]): Uint8Array {
  return Uint8Array.of(RECORD_TYPE_ALERT, 3, 3, 0, 2, LEVEL_FATAL, description);
}
