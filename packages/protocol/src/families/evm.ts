import { parseEvmAddress } from '../evm/address.ts';
import { recoverPersonalSigner } from '../evm/personal-sign.ts';
import { defineFamily, type PersonalCheck } from './family.ts';

const checkByRecovery: PersonalCheck = (text, signature, sender) =>
  recoverPersonalSigner(text, signature) === sender;

/** Ethereum and every chain with its accounts: `personal_sign` (EIP-191). */
export const evm = defineFamily({
  addressForm: '0x and 40 hexadecimal digits',
  parseAddress: parseEvmAddress,
  verify: (text, signature, sender, { checkPersonal = checkByRecovery }) =>
    checkPersonal(text, signature, sender),
});
