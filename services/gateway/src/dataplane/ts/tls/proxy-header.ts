import { writeIpv6 } from '../../native/frames.ts';
import type { Endpoints } from './wire.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const VERSION_2_PROXY = 0x21;
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;
const HEAD_BYTES = 16;
const MAPPED_PREFIX_BYTES = 12;

const isMapped = (address: Buffer) =>
  address.subarray(0, 10).every((byte) => byte === 0) && address.readUInt16BE(10) === 0xffff;

function addressBytes(address: string | undefined): Buffer {
  const bytes = Buffer.alloc(16);
  const plain = (address ?? '::').split('%', 1)[0]!;
  writeIpv6(plain.includes(':') ? plain : `::ffff:${plain}`, bytes, 0);
  return bytes;
}

/** The header of the PROXY protocol, version 2 (haproxy's proxy-protocol.txt, section 2.2), for a client's connection. */
export function proxyHeader(client: Endpoints): Buffer {
  const addresses = [addressBytes(client.remoteAddress), addressBytes(client.localAddress)];
  const isIpv4 = addresses.every(isMapped);
  const parts = addresses.map((address) => (isIpv4 ? address.subarray(MAPPED_PREFIX_BYTES) : address));
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(client.remotePort ?? 0, 0);
  ports.writeUInt16BE(client.localPort ?? 0, 2);
  const body = Buffer.concat([...parts, ports]);
  const head = Buffer.alloc(HEAD_BYTES);
  SIGNATURE.copy(head);
  head[12] = VERSION_2_PROXY;
  head[13] = isIpv4 ? TCP_OVER_IPV4 : TCP_OVER_IPV6;
  head.writeUInt16BE(body.length, 14);
  return Buffer.concat([head, body]);
}
