import { join } from 'node:path';
import { call } from '@skerry/client/call';
import { CoreClient } from '@skerry/client/core-client';
import { createSigner } from '@skerry/client/signer';
import { loadKeyFile } from '@skerry/kit/files';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { LIMITS, NETWORK_POST } from '@skerry/protocol/forms';
import { isThere } from './counted.ts';

/** A node that announced itself more often is not withdrawn at once, and says so again. */
const ROUNDS_MAX = 20;

/**
 * Takes back what a compute node announced, so that nobody looks for it any more.
 * @returns how many announcements; undefined where its key is not there
 */
export async function withdrawNode(dataDir: string, coreUrl: string): Promise<number | undefined> {
  const path = join(dataDir, 'node.key');
  if (!(await isThere(path))) return undefined;
  const signer = createSigner(await loadKeyFile(path));
  const core = new CoreClient({ url: coreUrl, signer });
  const query = { types: NETWORK_POST.node, addresses: signer.address, pagination: LIMITS.forgetHashes };
  let withdrawn = 0;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { posts } = await call(coreUrl, NETWORK_LISTS_API.listNetworkPosts, { query });
    if (posts.length === 0) break;
    const hashes = posts.map(({ original_item_hash: hash }) => hash);
    await core.postMessage({ type: 'FORGET', content: { hashes, reason: 'the node has left' } });
    withdrawn += posts.length;
  }
  return withdrawn;
}
