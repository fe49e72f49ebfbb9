import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreClient, createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { type Ledger, postMessage } from './load.ts';

const PACE_MS = 1_000;
const FILE_BYTES = 20_000;
/** Files read back at a time. */
const READS_AT_ONCE = 8;

/** What a sender hears whose first try was stored without an answer, and rejected before the second. */
const REJECTED = 'FILE_NOT_FOUND';

/** What the object store and whoever leads have to do. */
export class Files {
  /** Files whose STORE was acknowledged, by their SHA-256. */
  readonly kept: string[] = [];
  /** Acknowledged STORE messages whose file nobody has. */
  readonly lacking: string[] = [];
}

/** Stores a file, and a message that lacks its file, again and again, each until it is acknowledged. */
export async function storeFiles(
  url: string,
  files: Files,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<void> {
  const signer = createSigner(generatePrivateKey());
  const client = new CoreClient({ url, signer });
  const tryUntil = async (act: () => Promise<string>): Promise<void> => {
    while (!signal.aborted) {
      const said = await act();
      if (said === '') return;
      ledger.refuse(said);
      await delay(PACE_MS);
    }
  };
  while (!signal.aborted) {
    const bytes = randomBytes(FILE_BYTES);
    const hash = createHash('sha256').update(bytes).digest('hex');
    await tryUntil(async () => {
      try {
        await client.storeFile(new Blob([bytes]), 'noise', hash);
        files.kept.push(hash);
        return '';
      } catch (error) {
        return `file: ${(error as { code?: string }).code ?? 'connection broke'}`;
      }
    });
    const content = { item_type: 'storage', item_hash: sha256Hex(`nowhere ${hash}`) };
    const { body, itemHash } = signMessage({ type: 'STORE', content, channel: 'failover' }, signer);
    await tryUntil(async () => {
      const said = await postMessage(url, body);
      if (said !== '' && !said.includes(REJECTED)) return said;
      files.lacking.push(itemHash);
      return '';
    });
    await delay(PACE_MS);
  }
}

/** Those of the files that a process does not give as they were. */
export async function findLost(url: string, hashes: readonly string[]): Promise<string[]> {
  const lost: string[] = [];
  const line = [...hashes];
  const read = async () => {
    for (let hash = line.pop(); hash; hash = line.pop()) {
      const answer = await fetch(`${url}/api/v0/storage/raw/${hash}`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (createHash('sha256').update(bytes).digest('hex') !== hash) lost.push(hash);
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, read));
  return lost;
}

/** What became of messages without a file: nobody has rejected these yet, and the node knows nothing of those. */
export async function findUnrejected(
  url: string,
  hashes: readonly string[],
): Promise<{ readonly waiting: readonly string[]; readonly lost: readonly string[] }> {
  const waiting: string[] = [];
  const lost: string[] = [];
  for (const hash of hashes) {
    const answer = await fetch(`${url}/api/v0/messages/${hash}/status`);
    const { status } = (await answer.json()) as { status?: unknown };
    if (answer.status === 404) lost.push(hash);
    else if (status !== 'rejected') waiting.push(hash);
  }
  return { waiting, lost };
}
