import { secp256k1 } from '@noble/curves/secp256k1.js';
import { evmAddressOf } from '../evm/address.ts';
import { personalSignDigest } from '../evm/personal-digest.ts';
import { bytesToHex } from '../hex.ts';
import { evm } from './evm.ts';
import { describeFamily } from './testing/suite.ts';

describeFamily({
  name: 'EVM',
  family: evm,
  checksummed: false,
  createSignatory: (key) => ({
    address: evmAddressOf(secp256k1.getPublicKey(key, false)),
    sign(text) {
      const signature = secp256k1.sign(personalSignDigest(text), key, {
        prehash: false,
        format: 'recovered',
      });
      return Uint8Array.of(...signature.subarray(1), 27 + signature[0]!);
    },
    encode: (signature) => `0x${bytesToHex(signature)}`,
  }),
  normalise: (signature) => signature.toLowerCase().replace(/^0x/, ''),
  badAddresses: {
    'no 0x': '5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
    'a letter that is no digit': '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg',
    'a letter that lower-cases into ASCII': '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae\u212a',
  },
});
