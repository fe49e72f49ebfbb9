import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys';
import { type GossipSub, gossipsub, type Message, TopicValidatorResult } from '@libp2p/gossipsub';
import { identify } from '@libp2p/identify';
import { noise } from '@libp2p/noise';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { endWhenTold } from '@skerry/kit/threads';
import { createLibp2p } from 'libp2p';
import { peerOf } from './multiaddr.ts';
import {
  type FromThread,
  GOSSIP_BYTES_MAX,
  type GossipSettings,
  type GossipValidation,
  type ToThread,
  VALIDATED_AT_ONCE,
} from './traffic.ts';

/** Gossip has a thread of its own: encryption and the mesh cost the thread that answers requests nothing. */

const { seed, listen, announce, topic } = workerData as GossipSettings;
const RESULTS: Readonly<Record<GossipValidation, TopicValidatorResult>> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
};
/** How often known nodes without a connection are called. */
const DIAL_INTERVAL_MS = 3_000;
const DIAL_TIMEOUT_MS = 5_000;
const CONNECTIONS_MAX = 100;
/**
 * What a peer sends in one piece, which is whatever it was asked for: as much as its library sends. Of whoever sends more nothing is read
 * any more, and the connection stays.
 */
const RPC_BYTES_MAX = 4 * 1024 * 1024;
/** Earlier releases counted characters: whoever passes on so much may be of one. */
const EARLIER_BYTES_MAX = 3 * GOSSIP_BYTES_MAX;
/** One forged message is more than any good ones make up for, and is forgotten within minutes. */
const INVALID_WEIGHT = -100;
const INVALID_DECAY = 0.9;

const port = parentPort!;
const tell = (message: FromThread) => port.postMessage(message);
let banned: ReadonlySet<string> = new Set();
const validating = new Map<number, (validation: GossipValidation) => void>();
let lastId = 0;

const node = await createLibp2p({
  privateKey: await generateKeyPairFromSeed('Ed25519', seed),
  addresses: { listen: [...listen], announce: [...announce] },
  transports: [tcp()],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
  connectionManager: { maxConnections: CONNECTIONS_MAX, maxIncomingPendingConnections: 20 },
  connectionGater: {
    denyDialMultiaddr: () => false,
    denyInboundEncryptedConnection: (peer) => banned.has(peer.toString()),
  },
  services: {
    identify: identify(),
    pubsub: gossipsub({
      allowPublishToZeroTopicPeers: true,
      ignoreDuplicatePublishError: true,
      floodPublish: true,
      fallbackToFloodsub: false,
      emitSelf: false,
      allowedTopics: [topic],
      maxInboundDataLength: RPC_BYTES_MAX,
      // The same message is one message, whoever publishes it.
      msgIdFn: ({ data }: Message) => createHash('sha256').update(data).digest(),
      scoreParams: {
        // Nodes of one machine or one office share an address.
        IPColocationFactorWeight: 0,
        topics: {
          [topic]: {
            topicWeight: 1,
            timeInMeshWeight: 0,
            timeInMeshQuantum: 1_000,
            timeInMeshCap: 1,
            firstMessageDeliveriesWeight: 0.1,
            firstMessageDeliveriesDecay: 0.9,
            firstMessageDeliveriesCap: 100,
            meshMessageDeliveriesWeight: 0,
            meshMessageDeliveriesDecay: 0.9,
            meshMessageDeliveriesCap: 1,
            meshMessageDeliveriesThreshold: 1,
            meshMessageDeliveriesWindow: 10,
            meshMessageDeliveriesActivation: 1_000,
            meshFailurePenaltyWeight: 0,
            meshFailurePenaltyDecay: 0.9,
            invalidMessageDeliveriesWeight: INVALID_WEIGHT,
            invalidMessageDeliveriesDecay: INVALID_DECAY,
          },
        },
      },
    }),
  },
});
const pubsub = node.services.pubsub as GossipSub;

/** The node verifies on its own threads; while too much is being verified, the rest is left to reconciliation. */
pubsub.topicValidators.set(topic, async (peer, { data }) => {
  if (validating.size >= VALIDATED_AT_ONCE) return TopicValidatorResult.Ignore;
  if (data.length > GOSSIP_BYTES_MAX)
    return data.length > EARLIER_BYTES_MAX ? TopicValidatorResult.Reject : TopicValidatorResult.Ignore;
  const id = ++lastId;
  const { promise, resolve } = Promise.withResolvers<GossipValidation>();
  validating.set(id, resolve);
  tell({ kind: 'received', id, peer: peer.toString(), data: new Uint8Array(data) });
  return RESULTS[await promise];
});
pubsub.subscribe(topic);

const countPeers = () => node.getPeers().length;
node.addEventListener('peer:connect', ({ detail }) =>
  tell({ kind: 'connected', peer: detail.toString(), connected: countPeers() }),
);
node.addEventListener('peer:disconnect', ({ detail }) =>
  tell({ kind: 'disconnected', peer: detail.toString(), connected: countPeers() }),
);

let known: readonly string[] = [];
async function dialKnown(): Promise<void> {
  const connected = new Set(node.getPeers().map(String));
  const missing = known.filter((address) => {
    const peer = peerOf(address);
    return peer !== node.peerId.toString() && !connected.has(peer) && !banned.has(peer);
  });
  await Promise.allSettled(
    // Others chose the addresses: one that cannot be read is one that cannot be called.
    missing.map(async (address) =>
      node.dial(multiaddr(address), { signal: AbortSignal.timeout(DIAL_TIMEOUT_MS) }),
    ),
  );
}
setInterval(() => void dialKnown(), DIAL_INTERVAL_MS);

/** Whoever is not named any more may come back. */
async function ban(peers: readonly string[]): Promise<void> {
  banned = new Set(peers);
  await Promise.allSettled(
    node
      .getConnections()
      .filter((one) => banned.has(one.remotePeer.toString()))
      .map((one) => one.close()),
  );
}

endWhenTold(port);
port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'publish':
      pubsub
        .publish(topic, message.data)
        .catch(() => {})
        .finally(() => tell({ kind: 'published' }));
      break;
    case 'validated':
      validating.get(message.id)?.(message.validation);
      validating.delete(message.id);
      break;
    case 'peers':
      known = message.addresses;
      void ban(message.banned);
      void dialKnown();
  }
});
tell({ kind: 'ready', addresses: node.getMultiaddrs().map(String) });
