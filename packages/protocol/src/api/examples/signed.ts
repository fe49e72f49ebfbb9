import { FILE, OWNER, TIME, TIME_MS } from './values.ts';

/** What the owner signed: bodies as a client sends them (docs/wire-forms.md), with their item hashes. */

/** The signature is over this message, its fields in this order. */
const bodyOf = <C extends object>(type: string, channel: string, content: C, signature: string) => ({
  message: { chain: 'ETH', channel, type, timestamp: TIME, content },
  signature,
  address: OWNER,
});

const signed = <C extends object>(
  type: string,
  channel: string,
  content: C,
  itemHash: string,
  signature: string,
) => ({ itemHash, body: bodyOf(type, channel, content, signature) });

export const NOTE = signed(
  'POST',
  'notes',
  { type: 'note', content: { text: 'hello' } },
  '4a834bf936d337188f880e9be24f53a6fa6b0f447bf537ef0c7ac94a2c6a4c72',
  '0x79f1157eee172eff35865486fc2204acd3d9e9b58daa2997eb836bde9de87b2318f6b9ec7e1531f8cfd8b66b7fc51bce97786f09847a8f33f8ae5ad4933ed2801b',
);
export const PROFILE = signed(
  'AGGREGATE',
  'notes',
  { key: 'profile', content: { name: 'Ailsa', city: 'Girvan' } },
  'dd2520d2a3f0052aac5a9f40128730547b2028835cb364cb6f212eb69fb16a51',
  '0x196d9535fc34135395d86bf951b0df9fbdd7faaaf8fbd6aa9c6939f4834c2dc7685ffc57cdf26ba3bf7e39e4595f889e67e0b0844a55b1c5e841a5d24c8455571c',
);

export const INSTANCE = signed(
  'INSTANCE',
  'instances',
  {
    name: 'web',
    cpu: 1,
    memory: 2048,
    disk: 20,
    image: 'debian:12',
    ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz ailsa@example',
    firewall: { allowedPorts: [22, 443] },
  },
  '816315fb2bc9d17f3347909cc0766b1b51ae68956f5e4015805dd1cac1d259ee',
  '0x01a6c00d916f8bf74f49a9c3a2fd1ca0b44dfeb5093dee9329186c62f873e32d70a3808d28e640e1a8bc8af47fe5ec0151a6b05476c49f7929e47887cafc46451c',
);
export const RENAMING = signed(
  'INSTANCE_UPDATE',
  'instances',
  { instance_id: INSTANCE.itemHash, name: 'shop' },
  '628809048a11223acf7ecddf6496d24ae318a9d7c25f62e2da73093d58efed76',
  '0xd87bbe26d81496ae6d44d11e3d33ed035eb007386de619014ac8e880f9fc63a5549eaf5058e0cb0e2a1e0d1dc78b7b4c20d58ed837b69fff51494cd9be4d798c1c',
);
export const RESTART = signed(
  'INSTANCE_CONTROL',
  'instances',
  { instance_id: INSTANCE.itemHash, action: 'restart' },
  'c6b9765c0de43c705f0f030938d100d26abc9b3bc4d57264d19835c5db9064cd',
  '0xc89894ca9fdb61b2f13721e81249f89e8883e6d9c56973d70af8662bafd3271901b0a1f3bdad7dbc664c9c41af3b1f3a3b7871078ff43edc47824eb1e12ab8681c',
);

export const PROGRAM = signed(
  'PROGRAM',
  'programs',
  {
    name: 'greet',
    code: "def main(variables):\n  return 'hello ' + variables['name']",
    runtime: 'python3',
    memory: 128,
    timeout: 5,
  },
  'fdd0d2585e32f631afe311c670faefd1bbbe0a6289b159d9c86b5a68b4b1bdbb',
  '0xb69b41af7aad743eb9b9438135f2350e98a9c8ea16b1867f4a1d58b3b893a0bb7b0047f7f3fd47a48c07061bb8c77a648f4439fdc0b467217b1b33c463869c631b',
);

export const PIN = signed(
  'IPFS_PIN',
  'files',
  { hash: FILE.cid },
  '4ac66d612eb9a7b6a8e91515f0435ceb39e14a2f19b5732715f9203cce7e24f6',
  '0x23dce07ef5a13585c6f628a42543c48fe887b81d541a54e3463f2b5458bc3e34491a569d8206b8c45b0fd59d46d53cac0726d7013db26e90e34cc7d042c2cb091c',
);

export const WEBHOOK = signed(
  'WEBHOOK',
  'webhooks',
  {
    url: 'https://example.org/hook',
    events: ['message.new'],
    secret: 'a secret of your own',
    filters: { channels: ['notes'] },
  },
  'ee65cd2ec9dff104786734e6c6ebcfd2f41032d1f746d35af372db46f65d6fe3',
  '0xdb680826f6cb85eca64514cc12e8258f98fd1834e8da9dd5cef2d2d1fcc7540b7e047213105bf8c9a5add55f19a1902aac7d8397b79893422baa5d43f6acf1031c',
);

/** @param more fields of the content beside these */
const asking = (action: string, more: object, signature: string) =>
  bodyOf('WEBHOOK', 'webhooks', { action, webhook_id: WEBHOOK.itemHash, ...more }, signature);

/** What the owner asks of its webhooks. */
export const WEBHOOK_REQUESTS = {
  list: bodyOf(
    'WEBHOOK',
    'webhooks',
    { action: 'list' },
    '0xf67c8c8d89e8edffd799132565fb19727b0a21d7f18d94e3ed437ac4028839ed54b661329da454642e27effb89604115e35f09821743781797eafc08004b0cee1c',
  ),
  show: asking(
    'show',
    {},
    '0x34417523de4c81cb6db46a2bc129d5aafc4056ac779cba10918043ce213d71b00d80413ee0925aa0155d84ad1edfdd6fe0ff6e824b43763c0405a77b046de50a1b',
  ),
  pause: asking(
    'pause',
    {},
    '0x11e248e80bb08aa6018a4103c86ffd4b4265649b802d8f55ee2a6982db8a82ef48556f80b8a1e2a7dc95e9223726660e174b1f13334c5ffbcf93959bc3b8e63c1c',
  ),
  resume: asking(
    'resume',
    { missed: 'skip' },
    '0x7445ee1f2496ff9250db2e4d98cdf2774ca9f47780ae9512b875c09cae5195a30ad5ad6156b7506b92152dcf2bf538b30b7c6b41a7b1ff164c1151294a12a8781c',
  ),
  test: asking(
    'test',
    {},
    '0x18bd0a4cc2d47cb4b63be81a12e837c55ce8fe39246d4ec254deca8bb420a9413a3952a0aed468e3a408563cbb4d6a509b4fe440976f31ce4ae25598308cded81c',
  ),
  rotate: asking(
    'rotate',
    { secret: 'another secret of your own' },
    '0xdf7469419abf713cc8020b5f59511a21be1aee9d377e572a4ef074d2625ff3a427487ae2db2a769903d17983f4f039420c547465aa745b4aca89fa62631a96731c',
  ),
  delete: asking(
    'delete',
    {},
    '0x6468a39a26dba42842a26d6a7be68062057a06da348ba28b4a9bff685f0f18da4cb40a1a0d3d74ff9bd6161c10244bf30bde943f6f3b3fd6bf3697e215b8a5981b',
  ),
  deliveries: asking(
    'deliveries',
    { state: 'waiting' },
    '0xdcf2717ff2ef4ee48f647177048711b2ae3abe6d4d5d0e48f9475238a08ace2105e4b8e63392eefc44bff4d7790d475e929e0636f83acbe6822e389857101b641c',
  ),
  replay: asking(
    'replay',
    { since_ms: TIME_MS },
    '0x6a85e1d5774a37d4f3c7caf2e84a8e9eb38bdf0efcfa7b3bb05e13e20fede1e61f168ac3bbfc3a38a7a23d21f68d7961d210abf2ad1d27d823ee86e9f0268fbd1b',
  ),
};

/** The same note in the network form: its hash covers the text of its content, its signature the hash. */
export const NETWORK_CONTENT = { address: OWNER, time: TIME, type: 'note', content: { text: 'hello' } };
export const NETWORK_NOTE = {
  chain: 'ETH',
  sender: OWNER,
  type: 'POST',
  channel: 'notes',
  time: TIME,
  item_type: 'inline',
  item_hash: 'efc396827749575c125c21a7274f92b908a411efa7aa46419f9df0bb4e704912',
  item_content: JSON.stringify(NETWORK_CONTENT),
  signature:
    '0x257ebc5254db95d8f606bf1e081bc003cf71538e2feb70125377d729a12e53a13c434ab804287a439fcebbf096034ec1c30bd28952694fda0f7ffc9dac45dbc01c',
};

/** Over the file's hash. */
export const FILE_SIGNATURE =
  '0xa5f80bd5afaf357b4250ce3069cc6cd777ea1d54209d8aa3dd7bb7f15283878f70f383154cb50866c07b07943fa8b84fe23f2166b950dd6fd92f6d910ae915a91c';
