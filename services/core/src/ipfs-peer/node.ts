import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys';
import { identify } from '@libp2p/identify';
import type { Libp2p } from '@libp2p/interface';
import { kadDHT, passthroughMapper, removePrivateAddressesMapper } from '@libp2p/kad-dht';
import { noise } from '@libp2p/noise';
import { ping } from '@libp2p/ping';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { createReach, loadOrCreateKeyFile } from '@skerry/kit';
import { createLibp2p } from 'libp2p';
import type { IpfsPeerConfig } from './config.ts';
import { PEER_LIMITS } from './limits.ts';
import { createGater } from './reach.ts';

const KEY_FILE = 'peer.key';
const SEED_PURPOSE = 'skerry ipfs peer identity';
const SEED_BYTES = 32;

async function readSeed(dataDir: string): Promise<Uint8Array> {
  const key = await loadOrCreateKeyFile(join(dataDir, KEY_FILE));
  return new Uint8Array(hkdfSync('sha256', key, '', SEED_PURPOSE, SEED_BYTES));
}

/** A peer of the IPFS network: TCP, Noise, Yamux, and the DHT. */
export async function createPeer(config: IpfsPeerConfig): Promise<Libp2p> {
  const named = new Set(config.bootstrap);
  let node: Libp2p | undefined;
  const gater = createGater(createReach(config.allowPrivate), named, () => node?.getConnections() ?? []);
  node = (await createLibp2p({
    privateKey: await generateKeyPairFromSeed('Ed25519', await readSeed(config.dataDir)),
    addresses: { listen: config.listen, announce: config.announce },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionManager: {
      maxConnections: config.maxPeers,
      maxIncomingPendingConnections: PEER_LIMITS.pendingConnections,
    },
    connectionGater: gater,
    services: {
      identify: identify(),
      ping: ping() as never,
      dht: kadDHT({
        protocol: config.dhtProtocol,
        clientMode: false,
        peerInfoMapper: config.allowPrivate ? passthroughMapper : removePrivateAddressesMapper,
        maxInboundStreams: PEER_LIMITS.streams,
      }) as never,
    },
  })) as unknown as Libp2p;
  return node;
}

/** Calls the first peers where nobody is connected. */
export async function callFirst(node: Libp2p, bootstrap: readonly string[]): Promise<void> {
  if (node.getPeers().length > 0) return;
  await Promise.allSettled(
    bootstrap.map((address) =>
      node.dial(multiaddr(address), { signal: AbortSignal.timeout(PEER_LIMITS.messageMs) }),
    ),
  );
}
