import { type Host, withBitswap } from '@helia/bitswap';
import type { Libp2p, Stream } from '@libp2p/interface';
import type { CID } from 'multiformats/cid';
import { sha256 } from 'multiformats/hashes/sha2';
import type { CoreBlocks } from './core-blocks.ts';
import { PEER_LIMITS } from './limits.ts';
import type { PeerRates } from './rate.ts';

type Broker = Parameters<Host['addBlockBroker']>[0];

/** Counts what goes out on a stream. */
function counted(stream: Stream, note: (bytes: number) => void): Stream {
  const send = stream.send.bind(stream);
  stream.send = (data) => {
    note(data.byteLength);
    return send(data);
  };
  return stream;
}

/** The same peer, on which nothing is sent to somebody who got more than their rate until that is made up for. */
function limited(libp2p: Libp2p, rates: PeerRates): Libp2p {
  const dialProtocol: Libp2p['dialProtocol'] = async (peer, protocols, options) => {
    const rate = rates.of(String(peer));
    await rate.wait(options?.signal);
    return counted(await libp2p.dialProtocol(peer, protocols, options), (bytes) => rate.note(bytes));
  };
  return new Proxy(libp2p, {
    get(target, name) {
      if (name === 'dialProtocol') return dialProtocol;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export interface Exchange extends AsyncDisposable {
  /** A block that some peer has, checked. Rejects when the signal ends. */
  find(cid: CID, signal: AbortSignal): Promise<Uint8Array>;
}

/** Bitswap: blocks of the core node for whoever asks, and blocks of others for the core node. */
export async function startExchange(parts: {
  readonly libp2p: Libp2p;
  readonly blocks: CoreBlocks;
  readonly rates: PeerRates;
  readonly routing: Host['routing'];
}): Promise<Exchange> {
  const { libp2p, blocks, rates, routing } = parts;
  let mixin: Parameters<Host['addMixin']>[0] | undefined;
  let broker: Broker | undefined;
  const host: Host = {
    libp2p: limited(libp2p, rates),
    logger: libp2p.logger,
    blockstore: blocks,
    routing,
    // Blocks of other hashes are not kept.
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
    maxInboundStreams: PEER_LIMITS.streams,
    maxOutboundStreams: PEER_LIMITS.streams,
    maxWantlistSize: PEER_LIMITS.wants,
    maxIncomingMessageSize: PEER_LIMITS.messageBytes,
    messageSendTimeout: PEER_LIMITS.messageMs,
    messageReceiveTimeout: PEER_LIMITS.messageMs,
    sendBlocksTimeout: PEER_LIMITS.messageMs,
  });
  await mixin!.start(host);
  return {
    find: (cid, signal) => broker!.retrieve(cid, { signal }),
    [Symbol.asyncDispose]: async () => broker!.stop(),
  };
}
