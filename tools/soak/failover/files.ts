import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CoreClient,
  createSigner,
  generatePrivateKey,
  request,
  type SendRest,
  signMessage,
  storeInParts,
} from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import type { UploadView } from '@skerry/protocol/api/core/storage';
import { type Ledger, postMessage } from './load.ts';

const PACE_MS = 1_000;
const FILE_BYTES = 20_000;
/** Of a file whose parts go to one process and another in turn. */
const PARTED_BYTES = 2_000_000;
const PART_BYTES = 450_000;
/** Files read back at a time. */
const READS_AT_ONCE = 8;

/** What a sender hears whose first try was stored without an answer, and rejected before the second. */
const REJECTED = 'FILE_NOT_FOUND';

/** What the object store and whoever leads have to do. */
export class Files {
  /** Files whose STORE was acknowledged, by their SHA-256. */
  readonly kept: string[] = [];
  /** So many of them came in parts. */
  parted = 0;
  /** Acknowledged STORE messages whose file nobody has. */
  readonly lacking: string[] = [];
}

/** Until it says nothing: what it was refused with is noted. */
async function tryUntil(ledger: Ledger, signal: AbortSignal, act: () => Promise<string>): Promise<void> {
  while (!signal.aborted) {
    const said = await act();
    if (said === '') return;
    ledger.refuse(said);
    await delay(PACE_MS);
  }
}

/** Stores a file until it is acknowledged. */
async function storeOne(
  bytes: Uint8Array<ArrayBuffer>,
  what: string,
  { files, ledger, signal }: Storing,
  store: (file: Blob, hash: string) => Promise<unknown>,
): Promise<string> {
  const hash = createHash('sha256').update(bytes).digest('hex');
  await tryUntil(ledger, signal, async () => {
    try {
      await store(new Blob([bytes]), hash);
      files.kept.push(hash);
      return '';
    } catch (error) {
      return `${what}: ${(error as { code?: string }).code ?? 'connection broke'}`;
    }
  });
  return hash;
}

export interface Storing {
  readonly files: Files;
  readonly ledger: Ledger;
  readonly signal: AbortSignal;
}

/** Stores a file, and a message that lacks its file, again and again, each until it is acknowledged. */
export async function storeFiles(url: string, storing: Storing): Promise<void> {
  const { files, ledger, signal } = storing;
  const signer = createSigner(generatePrivateKey());
  const client = new CoreClient({ url, signer });
  while (!signal.aborted) {
    const hash = await storeOne(randomBytes(FILE_BYTES), 'file', storing, (file, itsHash) =>
      client.storeFile(file, 'noise', itsHash),
    );
    const content = { item_type: 'storage', item_hash: sha256Hex(`nowhere ${hash}`) };
    const { body, itemHash } = signMessage({ type: 'STORE', content, channel: 'failover' }, signer);
    await tryUntil(ledger, signal, async () => {
      const said = await postMessage(url, body);
      if (said !== '' && !said.includes(REJECTED)) return said;
      files.lacking.push(itemHash);
      return '';
    });
    await delay(PACE_MS);
  }
}

/** Stores files again and again of which each process gets a part in turn. */
export async function storeParts(urls: readonly string[], storing: Storing): Promise<void> {
  const [first = ''] = urls;
  const client = new CoreClient({ url: first, signer: createSigner(generatePrivateKey()) });
  let turn = 0;
  const send: SendRest = async (url, rest) => {
    const other = url.replace(first, urls[turn++ % urls.length]!);
    const answer = await request(other, { method: 'PUT', body: rest.slice(0, PART_BYTES, rest.type) });
    return (await answer.json()) as UploadView;
  };
  while (!storing.signal.aborted) {
    await storeOne(randomBytes(PARTED_BYTES), 'file in parts', storing, async (file, hash) => {
      if ((await storeInParts(client, file, hash, { send })) === undefined)
        throw Object.assign(new Error('only as a whole'), { code: 'ONLY_AS_A_WHOLE' });
      storing.files.parted++;
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
