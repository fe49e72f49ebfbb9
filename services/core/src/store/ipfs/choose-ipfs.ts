import type { Kysely } from 'kysely';
import type { BlobStore } from '../files/blob-store.ts';
import type { Claims } from '../files/claims.ts';
import type { Schema } from '../schema.ts';
import { createBlockIndex } from './block-index.ts';
import { createEmbeddedIpfs } from './embedded.ts';
import { type BlockSource, createGatewaySource } from './gateways.ts';
import type { Ipfs } from './ipfs.ts';
import { createKuboIpfs } from './kubo.ts';
import { createPinBook } from './pin-book.ts';

interface IpfsSettings {
  /** A kubo daemon's RPC address; blocks are kept in the node's own store without one. */
  readonly ipfsRpcUrl: string | undefined;
  readonly ipfsRpcAuthorization: string | undefined;
  /** Where the embedded one asks for blocks. */
  readonly ipfsGateways: readonly string[];
  readonly ipfsTimeoutMs: number;
}

export function chooseIpfs(
  settings: IpfsSettings,
  parts: {
    readonly db: Kysely<Schema>;
    readonly blobs: BlobStore;
    readonly claims: Claims;
    readonly now: () => number;
    /** Addresses of more gateways. */
    readonly peers: readonly string[];
    /** In the place of gateways and peers: another way to ask for blocks. */
    readonly source?: BlockSource | undefined;
  },
): Ipfs {
  const { ipfsRpcUrl: url, ipfsRpcAuthorization: authorization, ipfsTimeoutMs: timeoutMs } = settings;
  const { db, blobs, claims, now, peers } = parts;
  if (url !== undefined) return createKuboIpfs({ url, authorization, timeoutMs }, createPinBook(db, now));
  const urls = [...settings.ipfsGateways, ...peers];
  const source = parts.source ?? createGatewaySource({ urls: () => urls, timeoutMs });
  return createEmbeddedIpfs({ blobs, claims, index: createBlockIndex(db, now), source });
}
