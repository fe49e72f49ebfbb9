import { join } from 'node:path';
import { verifyListed } from '@skerry/client';
import { call } from '@skerry/client/call';
import { CoreClient } from '@skerry/client/core-client';
import { createSigner } from '@skerry/client/signer';
import { loadKeyFile } from '@skerry/kit/files';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { AppError, fieldsOf, NETWORK_POST } from '@skerry/protocol/forms';
import { plainText } from '../output/text.ts';
import { isThere } from './counted.ts';

/** As many as come with what proves them. */
const ANNOUNCEMENTS_PER_ROUND = 100;
/** A node that announced itself more often is not withdrawn at once, and says so again. */
const ROUNDS_MAX = 200;

/** Throws UNEXPECTED_ANSWER where a message is not one by which this address announced its node. @returns its hash */
async function proveAnnouncement(coreUrl: string, row: NetworkMessageView, address: string): Promise<string> {
  const refuse = (why: string, cause?: unknown) =>
    new AppError(
      'UNEXPECTED_ANSWER',
      `${coreUrl} lists ${plainText(row.item_hash)} among the announcements of this node, of which nothing was taken back with it: ${why}`,
      { cause },
    );
  const signed = await verifyListed({ coreUrl }, row).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
    throw refuse(error.message, error);
  });
  const { itemHash, sender, type, content } = signed;
  const isAnnouncement = type === 'POST' && fieldsOf(content).type === NETWORK_POST.node;
  if (itemHash === row.item_hash && sender === address && isAnnouncement) return itemHash;
  throw refuse('its node did not sign it as one');
}

/**
 * Takes back what a compute node announced, so that nobody looks for it any more: whatever else the core node lists is not forgotten.
 * Throws UNEXPECTED_ANSWER.
 * @returns how many announcements; undefined where its key is not there
 */
export async function withdrawNode(dataDir: string, coreUrl: string): Promise<number | undefined> {
  const path = join(dataDir, 'node.key');
  if (!(await isThere(path))) return undefined;
  const signer = createSigner(await loadKeyFile(path));
  const core = new CoreClient({ url: coreUrl, signer });
  const { address } = signer;
  const asked = { msgTypes: 'POST', contentTypes: NETWORK_POST.node, addresses: address } as const;
  const query = { ...asked, pagination: ANNOUNCEMENTS_PER_ROUND, bodies: 'shared' } as const;
  let withdrawn = 0;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query });
    if (messages.length === 0) break;
    const hashes: string[] = [];
    for (const row of messages) hashes.push(await proveAnnouncement(coreUrl, row, address));
    await core.forget(hashes, 'the node has left');
    withdrawn += hashes.length;
  }
  return withdrawn;
}
