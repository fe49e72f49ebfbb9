import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { BlobStore } from '../files/blob-store.ts';
import type { Claims } from '../files/claims.ts';
import { createBlockIndex } from './block-index.ts';
import { createEmbeddedIpfs } from './embedded.ts';
import { type BlockSource, createGatewaySource } from './gateways.ts';
import type { Ipfs } from './ipfs.ts';
import { createKuboIpfs } from './kubo.ts';

export interface IpfsSettings {
  /** A kubo daemon's RPC address; blocks are kept in the node's own store without one. */
  readonly rpcUrl: string | undefined;
  readonly rpcAuthorization: string | undefined;
  /** Where the embedded one asks for blocks. */
  readonly gateways: readonly string[];
  readonly timeoutMs: number;
  /** In the place of gateways and peers: another way to ask for blocks. */
  readonly source?: BlockSource;
}

/** The node alone: no daemon, nobody to ask. */
export const ALONE: IpfsSettings = {
  rpcUrl: undefined,
  rpcAuthorization: undefined,
  gateways: [],
  timeoutMs: 2_000,
};

function checkUrl(name: string, text: string): void {
  const { protocol } = URL.canParse(text) ? new URL(text) : { protocol: '' };
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new AppError('INVALID_CONFIG', `${name}: expected http(s)://host[:port]`);
}

/** Throws INVALID_CONFIG. @param peers addresses of more gateways, asked for anew each time */
export function chooseIpfs(
  settings: IpfsSettings,
  parts: {
    readonly db: Kysely<Schema>;
    readonly blobs: BlobStore;
    readonly claims: Claims;
    readonly now: () => number;
    readonly peers?: (() => readonly string[]) | undefined;
  },
): Ipfs {
  const { rpcUrl, rpcAuthorization, gateways, timeoutMs } = settings;
  if (rpcUrl !== undefined) {
    checkUrl('SKERRY_CORE_IPFS_RPC_URL', rpcUrl);
    return createKuboIpfs({ url: rpcUrl, authorization: rpcAuthorization, timeoutMs });
  }
  for (const url of gateways) checkUrl('SKERRY_CORE_IPFS_GATEWAYS', url);
  const { db, blobs, claims, now, peers } = parts;
  const urls = () => [...gateways, ...(peers?.() ?? [])];
  const source = settings.source ?? createGatewaySource({ urls, timeoutMs, now });
  return createEmbeddedIpfs({ blobs, claims, index: createBlockIndex(db, now), source });
}
