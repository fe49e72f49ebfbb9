import { familyOf, type VerifiedMessage } from '@skerry/protocol';

/** On whose behalf a message speaks: `content.address` in the spelling that addresses are kept in, or the sender. */
export function ownerOf(message: VerifiedMessage, address: string | undefined): string {
  if (address === undefined || address === message.sender) return message.sender;
  // An owner may live on another chain than the one who signs; only EVM spells one address in several ways.
  return /^0x/i.test(address) ? familyOf('ETH').parseAddress(address) : address;
}
