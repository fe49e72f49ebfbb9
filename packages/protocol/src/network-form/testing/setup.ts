import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type EvmAddress, evmAddressOf } from '../../evm/address.ts';
import { personalSignDigest } from '../../evm/personal-digest.ts';
import { sha256Hex } from '../../hash.ts';
import { bytesToHex } from '../../hex.ts';

/** Messages of the network form as tests make them, signed by one Ethereum key. */

const KEY = new Uint8Array(32).fill(0x11);
export const ADDRESS: EvmAddress = evmAddressOf(secp256k1.getPublicKey(KEY, false));
export const NOW = 1_800_000_000;
export const HASH = 'ab'.repeat(32);
export const CID0 = `Qm${'a'.repeat(44)}`;
export const CID1 = `bafy${'a'.repeat(55)}`;
export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi someone';

export function sign(text: string): string {
  const signature = secp256k1.sign(personalSignDigest(text), KEY, { prehash: false, format: 'recovered' });
  return `0x${bytesToHex(signature.subarray(1))}${(27 + signature[0]!).toString(16)}`;
}

export type Fields = Record<string, unknown>;

/** Signs the four fields that are signed, whatever they are. */
export function signed(fields: Fields): Fields {
  const { chain, sender, type, item_hash } = fields;
  return { ...fields, signature: sign(`${chain}\n${sender}\n${type}\n${item_hash}`) };
}

/** A good inline message, with some fields different. */
export function inlineMessage(itemContent: string, others: Fields = {}): Fields {
  return signed({
    chain: 'ETH',
    sender: ADDRESS,
    type: 'POST',
    channel: 'TEST',
    time: NOW + 0.25,
    item_type: 'inline',
    item_hash: sha256Hex(itemContent),
    item_content: itemContent,
    ...others,
  });
}

/** A good message whose content is a file. */
export function fileMessage(itemHash: string, others: Fields = {}): Fields {
  const { item_content: _, ...fields } = inlineMessage('{}');
  return signed({ ...fields, item_type: 'storage', item_hash: itemHash, ...others });
}

export const head = { address: ADDRESS, time: NOW };

const machine = {
  ...head,
  allow_amend: false,
  resources: { vcpus: 2, memory: 2048, seconds: 30 },
  volumes: [],
};

/** The smallest usual content of each type. */
export const samples = {
  POST: { ...head, type: 'note', content: { body: 'x', tags: ['a', 'b'] } },
  AGGREGATE: { ...head, key: 'profile', content: { name: 'x' } },
  STORE: { ...head, item_type: 'storage', item_hash: HASH },
  FORGET: { ...head, hashes: [HASH], reason: 'why not' },
  PROGRAM: {
    ...machine,
    type: 'vm-function',
    code: { encoding: 'zip', entrypoint: 'main:app', ref: HASH, use_latest: true },
    runtime: { ref: HASH, use_latest: true, comment: '' },
    on: { http: true, persistent: false },
    environment: { reproducible: false, internet: true, aleph_api: true, shared_cache: false },
  },
  INSTANCE: {
    ...machine,
    metadata: { name: 'box' },
    authorized_keys: [SSH_KEY],
    environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
    rootfs: { parent: { ref: HASH, use_latest: true }, persistence: 'host', size_mib: 20_481 },
  },
} as const;
