import { type Host, withBitswap } from '@helia/bitswap';
import { identify } from '@libp2p/identify';
import { kadDHT, passthroughMapper } from '@libp2p/kad-dht';
import { noise } from '@libp2p/noise';
import { ping } from '@libp2p/ping';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { createLibp2p } from 'libp2p';
import { CID } from 'multiformats/cid';
import { sha256 } from 'multiformats/hashes/sha2';
import type { Answer, Ask } from './foreign.ts';

/** A process: libp2p, its DHT and helia's Bitswap over blocks in memory, and nothing of ours. */

/** Only what hangs takes as long. */
const HANG_MS = 120_000;
/** One try of a block that may not be announced yet. */
const TRY_MS = 30_000;
const kept = new Map<string, Uint8Array>();
const keyOf = (cid: CID) => Buffer.from(cid.multihash.digest).toString('hex');
const node = await createLibp2p({
  addresses: { listen: [process.argv[2]!] },
  transports: [tcp()],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
  services: {
    identify: identify(),
    ping: ping() as never,
    dht: kadDHT({
      protocol: process.argv[3]!,
      clientMode: false,
      peerInfoMapper: passthroughMapper,
      maxInboundStreams: 32,
    }) as never,
  },
});
let broker: Parameters<Host['addBlockBroker']>[0] | undefined;
let mixin: Parameters<Host['addMixin']>[0] | undefined;
const host: Host = {
  libp2p: node as never,
  logger: node.logger as never,
  blockstore: {
    has: async (cid) => kept.has(keyOf(cid)),
    async *get(cid) {
      yield kept.get(keyOf(cid))!;
    },
  },
  routing: {
    async *findProviders(cid, options) {
      for await (const { id, multiaddrs } of node.contentRouting.findProviders(cid, options)) {
        await node.peerStore.merge(id, { multiaddrs });
        yield { id: id.toCID(), multiaddrs, router: 'dht' };
      }
    },
  },
  getHasher: () => sha256,
  status: 'starting',
  addMixin: (one) => {
    mixin = one;
  },
  hasBlockBroker: () => false,
  addBlockBroker: (one) => {
    broker = one;
  },
};
withBitswap(host, {
  maxInboundStreams: 32,
  maxOutboundStreams: 32,
  maxWantlistSize: 1_024,
  maxIncomingMessageSize: 4 * 1024 * 1024,
  messageSendTimeout: 10_000,
  messageReceiveTimeout: 10_000,
  sendBlocksTimeout: 10_000,
});
await mixin!.start(host);

const ACTS: Readonly<Record<Ask['act'], (text: string) => Promise<string>>> = {
  async dial(address) {
    await node.dial(multiaddr(address));
    return '';
  },
  async put(base64) {
    const bytes = Buffer.from(base64, 'base64');
    kept.set(Buffer.from((await sha256.digest(bytes)).digest).toString('hex'), bytes);
    return '';
  },
  async provide(cid) {
    await node.contentRouting.provide(CID.parse(cid), { signal: AbortSignal.timeout(HANG_MS) });
    return '';
  },
  async get(cid) {
    const signal = AbortSignal.timeout(TRY_MS);
    return Buffer.from(await broker!.retrieve(CID.parse(cid), { signal })).toString('base64');
  },
};

process.on('message', async ({ id, act, text }: Ask) => {
  const answer: Answer = await ACTS[act](text).then(
    (value) => ({ id, value }),
    (error: Error) => ({ id, failure: `${error.name}: ${error.message}` }),
  );
  process.send!(answer);
});
process.once('disconnect', () => process.exit(0));
process.send!({ id: 0, value: node.getMultiaddrs().map(String).join() } satisfies Answer);
