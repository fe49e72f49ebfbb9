import { isIPv4 } from 'node:net';
import { networkOf } from '../../refusals/network.ts';
import { QUIC_OUTCOMES, TLS_OUTCOMES } from '../figures.ts';
import type { AccessRecord, Refusal } from '../port.ts';
import { ACCESS_RECORD, REFUSED_PROTOCOLS, REFUSED_RECORD } from './layout.ts';

/** In the one spelling of RFC 5952. */
const shortIpv6 = (address: string) => new URL(`http://[${address}]`).hostname.slice(1, -1);

/** An address of 16 bytes, as people write it; a mapped one as IPv4. */
function writeAddress(bytes: readonly number[]): string {
  const ipv4 = bytes.slice(12).join('.');
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  if (isMapped && isIPv4(ipv4)) return ipv4;
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16));
  return shortIpv6(groups.join(':'));
}

/** A line of the access log as the native plane tells it. */
export function readAccess(payload: Buffer): AccessRecord {
  const { clientAddress, protocol, outcome, nameLength, ...rest } = ACCESS_RECORD.read(payload);
  const nameAt = ACCESS_RECORD.sizeBytes;
  return {
    ...rest,
    clientAddress: writeAddress(clientAddress),
    ...(protocol === REFUSED_PROTOCOLS.quic
      ? { protocol: 'quic', outcome: QUIC_OUTCOMES[outcome] ?? null }
      : { protocol: 'tls', outcome: TLS_OUTCOMES[outcome] ?? null }),
    hostname: nameLength === 0 ? null : payload.toString('latin1', nameAt, nameAt + nameLength),
  };
}

/** Whom the native plane refused since it last said so. */
export function* readRefused(payload: Buffer): Generator<Refusal> {
  for (let at = 0; at < payload.length; at += REFUSED_RECORD.sizeBytes) {
    const { network, count, protocol, outcome } = REFUSED_RECORD.read(payload.subarray(at));
    const one = {
      network: network.some((byte) => byte !== 0) ? networkOf(writeAddress(network)) : null,
      count,
    };
    if (protocol === REFUSED_PROTOCOLS.tls) yield { ...one, protocol: 'tls', reason: TLS_OUTCOMES[outcome]! };
    else yield { ...one, protocol: 'quic', reason: QUIC_OUTCOMES[outcome]! };
  }
}
