/** What is used of libraries whose own types need packages of helia that are not installed (docs/dependencies.md). */

declare module '@helia/bitswap' {
  import type { Libp2p } from '@libp2p/interface';
  import type { CID } from 'multiformats/cid';

  export interface Provider {
    /** Of its peer id. */
    readonly id: CID;
    readonly multiaddrs: readonly unknown[];
    readonly router: string;
  }

  interface Options {
    readonly signal?: AbortSignal;
  }

  interface Broker {
    /** The bytes of the block, checked. */
    retrieve(cid: CID, options?: Options): Promise<Uint8Array>;
    stop(): Promise<void>;
  }

  export interface Host {
    readonly libp2p: Libp2p;
    readonly logger: Libp2p['logger'];
    readonly blockstore: {
      has(cid: CID, options?: Options): Promise<boolean>;
      get(cid: CID, options?: Options): AsyncIterable<Uint8Array>;
    };
    readonly routing: {
      findProviders(cid: CID, options?: Options): AsyncIterable<Provider>;
    };
    getHasher(code: number): unknown;
    readonly status: 'starting';
    addMixin(mixin: { start(host: Host): Promise<void> }): void;
    hasBlockBroker(name: string): boolean;
    addBlockBroker(broker: Broker): void;
  }

  /** Has `addMixin` called with what starts Bitswap. */
  export function withBitswap(
    host: Host,
    options: {
      readonly maxInboundStreams: number;
      readonly maxOutboundStreams: number;
      readonly maxWantlistSize: number;
      readonly maxIncomingMessageSize: number;
      readonly messageSendTimeout: number;
      readonly messageReceiveTimeout: number;
      readonly sendBlocksTimeout: number;
    },
  ): void;
}

declare module '@libp2p/kad-dht' {
  type Mapper = (peer: { readonly multiaddrs: readonly unknown[] }) => unknown;
  export const passthroughMapper: Mapper;
  export const removePrivateAddressesMapper: Mapper;
  export function kadDHT(options: {
    readonly protocol: string;
    readonly clientMode: boolean;
    readonly peerInfoMapper: Mapper;
    readonly maxInboundStreams: number;
  }): (components: never) => unknown;
}

declare module '@libp2p/ping' {
  export function ping(): (components: never) => unknown;
}
