/**
 * What the examples are about: an owner, and what it sent in one second of January 2026. Hashes, signatures and proofs are true (a
 * test checks them), so that whoever writes a client can compare.
 */

/** Its private key is 32 bytes of `11` (docs/wire-forms.md). */
export const OWNER = '0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a';
/** Who may act on its behalf. */
export const DELEGATE = '0x1563915e194d8cfba1943570603f7606a3115508';

/** Unix seconds. */
export const TIME = 1_767_323_045;
export const TIME_MS = TIME * 1000;
/** The same moment. */
export const DATE = '2026-01-02T03:04:05.000Z';

export const VERSION = '0.1.0';

export const COMPUTE_NODE = {
  id: '45bbf4e58de0a81302119c1dc18ee6818689d9c344abcfc77b15646370844910',
  address: '0x5cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb',
  url: 'https://compute.example.org',
  prefix: '2001:db8:1:2::/64',
};
export const CORE_NODE = {
  id: '581ac88b8989114ca373830f6186ad84a986f6d585a13982fa8c870098bd6754',
  address: '0x7564105e977516c53be337314c7e53838967bdac',
  url: 'https://core.example.org',
};
export const SCHEDULER = '0xe1fae9b4fab2f5726677ecfa912d96b0b683e6a9';
export const CREDIT_PUBLISHER = '0xdb2430b4e9ac14be6554d3942822be74811a1af9';
export const MONITOR = '0xae72a48c1a36bd18af168541c53037965d26e4a8';

/** 64 hexadecimal digits of whoever asks for a proof. */
export const CHALLENGE = 'ab'.repeat(32);

/** The text `Hello World`. */
export const FILE = {
  hash: 'a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e',
  cid: 'QmUXTtySmd7LD4p6RG6rZW6RuUuPZXTtNMmRQ6DSQo3aMw',
  bytes: 11,
  /** The message that keeps it. */
  store: '824d80d71985f082a26997a8db88b5d1dd45b777d73585d03d236303e21bde97',
};

/** The place of the instance on the compute node, and its host name. */
export const IPV6 = { network: '2001:db8:1:2:3:8163:15fb:2bc0/124', guest: '2001:db8:1:2:3:8163:15fb:2bc1' };
export const HOSTNAME = 'lift-board-learn-fiscal';

/** What an instance is to be whose message is not sent yet, in the network form. */
export const PLANNED_INSTANCE = {
  address: OWNER,
  time: TIME,
  allow_amend: false,
  environment: { internet: true, aleph_api: true },
  resources: { vcpus: 1, memory: 2_048, seconds: 30 },
  rootfs: { parent: { ref: 'debian:12', use_latest: true }, persistence: 'host', size_mib: 20_480 },
  volumes: [],
};

/** Of Ethereum: a block, a transaction in it, and the contract of a token. */
export const BLOCK = 24_146_210;
export const TRANSACTION = '0x1b5b9ccb3e8d006a5230de9bda23ff91edc794d4f56410560830b418528e446c';
export const TOKEN = '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48';

/** Where all there is stands on one page. */
export const PAGINATION = { total: 1, page: 1, per_page: 20, total_pages: 1 };
export const deployedPagination = (size = 20, total = 1) => ({
  pagination_per_page: size,
  pagination_page: 1,
  pagination_total: total,
});

/** What a service says where people look first. @param more documents beside those that each has */
export const frontOf = (name: string, description: string, more: Readonly<Record<string, string>> = {}) => ({
  answer: {
    name,
    version: VERSION,
    description,
    documents: { reference: '/api/v0/docs', openapi: '/api/v0/openapi.json', ...more },
  },
});
