import ipaddr from 'ipaddr.js';
import { parseItemHash } from './hash.ts';

/**
 * Where every compute node answers with its diagnostic program: under the hash that the network's monitors ask for, and
 * under the one that older ones ask for. A node needs no message for it.
 */
export const DIAGNOSTIC_VMS = [
  '63faf8b5db1cf8d965e6a464a0cb8062af8e7df131729e48738342d956f29ace',
  '67705389842a0a1b95eaa408b009741027964edc805997475e95c505d642edd8',
] as const;

/** The one to ask for. */
export const DIAGNOSTIC_VM = DIAGNOSTIC_VMS[0];

/** The part of a program's address that says "program"; an instance's says 3. */
const KIND_PROGRAM = 1;

/**
 * Where a program's machine is on a node: the node's /64, then 1, then the first 44 bits of the hash, then 1.
 * @param nodeIpv6 any address of the node's /64
 */
export function programAddress(nodeIpv6: string, vmHash: string): string {
  const hash = parseItemHash(vmHash);
  const groups = [hash.slice(0, 4), hash.slice(4, 8), `${hash.slice(8, 11)}1`];
  const parts = ipaddr.IPv6.parse(nodeIpv6).parts.slice(0, 4);
  return new ipaddr.IPv6([
    ...parts,
    KIND_PROGRAM,
    ...groups.map((group) => Number.parseInt(group, 16)),
  ]).toRFC5952String();
}
