import { decideReserveBytes } from '@skerry/database';
import { loadIndexerSettings } from '@skerry/indexer';
import type { Keeping } from '@skerry/kit';
import { loadAnchorSettings } from './chains/anchoring/settings.ts';
import type { CoreConfig } from './config.ts';

/** Wallets that pay for archives. Throws where a file that names them cannot be read: a backup without them would lack money. */
async function walletFiles({ indexerFile, anchorFile }: CoreConfig): Promise<string[]> {
  const { anchors } = await loadAnchorSettings(anchorFile, await loadIndexerSettings(indexerFile));
  return anchors.flatMap(({ packing }) => packing?.keyFile ?? []);
}

/** What a core node must not lose (docs/backup.md). */
export const coreKeeping: Keeping<CoreConfig> = {
  identity: 'node.key',
  entries: [
    { path: 'node.key', kind: 'secret', what: 'the key that other nodes know it by' },
    { path: 'sealing.key', kind: 'secret', what: 'opens the secrets of webhooks' },
    { path: 'vrf-keys.json', kind: 'secret', what: 'keys of random values' },
    { path: 'vrf-keys.json.lock', kind: 'passing', what: 'which process replaces the key of random values' },
    { path: 'p2p.key', kind: 'secret', what: 'the identity in gossip' },
    { path: 'p2p.lock', kind: 'passing', what: 'which process has that identity' },
    { path: 'not-well-since-*.json', kind: 'passing', what: 'since when its parts are not well' },
    { path: 'followed-*.json', kind: 'passing', what: 'how far the database had come' },
    { path: 'postgres/cluster/', kind: 'database', what: 'the embedded PostgreSQL' },
    { path: 'postgres/', kind: 'passing', what: 'lock, socket and programs of the embedded PostgreSQL' },
    { path: 'files.lock', kind: 'passing', what: 'which processes work in files/' },
    { path: 'files/incoming/', kind: 'passing', what: 'uploads that are not complete' },
    { path: 'parts/', kind: 'passing', what: 'files that come in parts and are not complete' },
    { path: 'holds/', kind: 'passing', what: 'room on the disk that processes keep for files that come' },
    { path: 'files/store-id', kind: 'state', what: 'which directory of files the database goes with' },
    { path: 'files/scrub.json', kind: 'passing', what: 'how far files were read again' },
    { path: 'files/damaged/', kind: 'passing', what: 'damaged files that nobody gave again' },
    { path: 'files/', kind: 'files', what: 'files and blocks of IPFS, by SHA-256' },
  ],
  elsewhere: async (config) =>
    [config.indexerFile, config.anchorFile, ...(await walletFiles(config))].filter(
      (path) => path !== undefined,
    ),
  reserveBytes: ({ diskReserveMib }, diskBytes) => decideReserveBytes(diskBytes, diskReserveMib),
  absent: ({ databaseUrl, s3Bucket, ipfsRpcUrl }) => [
    ...(databaseUrl === undefined
      ? []
      : [
          "the database: it is on a server of its own (SKERRY_CORE_DATABASE_URL); save it with that server's tools, such as pgBackRest or pg_dump",
        ]),
    ...(s3Bucket === undefined
      ? []
      : ["files: they are in the object store (SKERRY_CORE_S3_BUCKET); save them with that store's tools"]),
    ...(ipfsRpcUrl === undefined
      ? []
      : ['blocks of IPFS: kubo keeps them (SKERRY_CORE_IPFS_RPC_URL); save its repository']),
  ],
};
