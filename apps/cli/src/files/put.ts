import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { call } from '@skerry/client/call';
import type { CoreClient } from '@skerry/client/core-client';
import { changedFile, PARTS_FROM_BYTES, storeInParts } from '@skerry/client/upload';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { StoredFileView } from '@skerry/protocol/api/core/storage';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { verdictFields } from '../messages/verdict.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';
import { openBlob } from './blob.ts';
import { readWhole } from './read-text.ts';

export interface FilePutOptions {
  readonly tags?: string[];
  readonly channel?: string;
}

interface Putting {
  readonly core: CoreClient;
  readonly file: Blob;
  readonly name: string;
  readonly options: FilePutOptions;
}

/** Of standard input, which is read once and kept in memory. */
const STDIN_BYTES_MAX = 64 * 1024 * 1024;

/** SHA-256 of a file that may be larger than memory. */
async function hashFile({ file, name }: Pick<Putting, 'file' | 'name'>, progress: Progress): Promise<string> {
  const hash = createHash('sha256');
  let done = 0;
  try {
    for await (const chunk of file.stream()) {
      hash.update(chunk);
      done += chunk.length;
      progress.show(`reading ${name}: ${Math.floor((100 * done) / file.size)}%`);
    }
  } catch (error) {
    throw changedFile(error);
  }
  return hash.digest('hex');
}

const tooMuch = () =>
  new AppError(
    'INVALID_PARAMETERS',
    `more than ${renderBytes(STDIN_BYTES_MAX)} come on standard input: write them to a file, and send that`,
  );

const openFile = async (path: string, stdin: Context['stdin']): Promise<Blob> =>
  path === '-' ? new Blob([await readWhole(stdin, STDIN_BYTES_MAX, tooMuch)]) : openBlob(path);

/** Sends a large file so that it goes on where it broke off; a small one, or where the node takes no parts, as a whole. */
async function sendFile(
  { core, file, name, options }: Putting,
  hash: string,
  progress: Progress,
): Promise<StoredFileView> {
  const { size } = file;
  if (size >= PARTS_FROM_BYTES) {
    const onPart = (received: number) =>
      progress.show(
        received === 0
          ? `uploading ${name} (${renderBytes(size)})`
          : `uploading ${name}: the node has ${renderBytes(received)} of ${renderBytes(size)}, sending the rest`,
      );
    const onBusy = () => progress.show(`the node has no room for ${name} now; it is asked again`);
    const itemHash = await storeInParts(core, file, hash, { ...options, onPart, onBusy });
    if (itemHash !== undefined) return { status: 'success', file_hash: hash, item_hash: itemHash };
  }
  progress.show(`uploading ${name} (${renderBytes(size)})`);
  return core.storeFile(file, name, hash, options);
}

/** Messages of one file and owner that are looked through for their tags. */
const LABELLED_MAX = 100;

const tagsOf = (content: unknown): readonly unknown[] => {
  const { tags } = (content ?? {}) as { readonly tags?: unknown };
  return Array.isArray(tags) ? tags : [];
};

/**
 * An upload signs the bytes alone: of a file that its owner sent before the first message stays as it is. Where none of the owner's
 * messages has the tags and the channel, one more says them.
 */
async function label(
  core: CoreClient,
  stored: StoredFileView,
  { tags = [], channel }: FilePutOptions,
): Promise<StoredFileView & ReturnType<typeof verdictFields>> {
  const kept = { ...stored, message_status: 'processed' } as const;
  if (tags.length === 0 && channel === undefined) return kept;
  const { file_hash: hash } = stored;
  const query = {
    ...{ addresses: core.signer.address, msgTypes: 'STORE', contentHashes: hash, pagination: LABELLED_MAX },
    ...(channel === undefined ? {} : { channels: channel }),
    ...(tags.length === 0 ? {} : { tags: tags.join(',') }),
  };
  const { messages } = await call(core.url, NETWORK_LISTS_API.listNetworkMessages, { query });
  const labelled = messages.find(({ content }) => tags.every((tag) => tagsOf(content).includes(tag)));
  if (labelled) return { ...kept, item_hash: labelled.item_hash };
  const content = { item_type: 'storage', item_hash: hash, ...(tags.length === 0 ? {} : { tags }) };
  const sent = await core.postMessage({
    type: 'STORE',
    content,
    ...(channel === undefined ? {} : { channel }),
  });
  return { ...stored, item_hash: sent.item_hash, ...verdictFields(sent) };
}

const keptAs = ({ file_hash: hash, item_hash: itemHash }: StoredFileView): Accepted => ({
  what: `${hash} was stored`,
  ids: { file_hash: hash, item_hash: itemHash },
  hint: 'the same command stores it only once',
});

export async function putFile(context: Context, path: string, options: FilePutOptions): Promise<void> {
  const core = await context.openWriter();
  const file = await openFile(path, context.stdin);
  const putting: Putting = { core, file, name: path === '-' ? 'stdin' : basename(path), options };
  using progress = context.output.progress();
  const hash = await hashFile(putting, progress);
  const sent = await sendFile(putting, hash, progress);
  const stored = await afterAccepted(context.output, keptAs(sent), () => label(core, sent, options));
  progress[Symbol.dispose]();
  context.output.result(stored, stored.file_hash);
}
