import { bytesToHex, keccak256 } from '@skerry/protocol';
import { type EventDefinition, signatureOf } from './types.ts';

const encoder = new TextEncoder();

/** The first topic of the logs of an event that is not anonymous: `0x` and 64 hexadecimal digits. */
export function topicOf(event: EventDefinition): string {
  return hashText(signatureOf(event));
}

export function hashText(text: string): string {
  return `0x${bytesToHex(keccak256(encoder.encode(text)))}`;
}
