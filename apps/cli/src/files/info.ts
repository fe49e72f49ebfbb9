import { parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { plainText, renderBytes, renderFields, renderTime } from '../output/text.ts';

/** STORE messages of a file that are told, the newest. */
const KEEPERS_SHOWN = 100;

/** What a core node says of a file, and of the messages that keep it. @throws AppError INVALID_HASH, FILE_NOT_FOUND */
export async function showFile({ reader, output }: Context, text: string): Promise<void> {
  const metadata = await reader.getFileMetadata(parseItemHash(text));
  const found = await reader.findMessages({ contentHashes: metadata.file_hash, limit: KEEPERS_SHOWN });
  const total = await reader.countFileMessages(metadata.file_hash);
  const kept_by = found.messages.map(({ item_hash, sender, time }) => ({ item_hash, sender, time }));
  output.result(
    { ...metadata, kept_by, kept_by_total: total },
    renderFields([
      ['file', plainText(metadata.file_hash)],
      ['size', renderBytes(metadata.size)],
      ['download', plainText(metadata.download_url)],
      ...kept_by.map(({ item_hash, sender, time }): [string, string] => [
        'kept_by',
        `${plainText(item_hash)} of ${plainText(sender)}, ${renderTime(time)}`,
      ]),
    ]),
  );
  if (total === 0) output.note('no message keeps it: the node removes it, by default a day after it came');
  // What has it as its content, or as its code, is no STORE message and is only counted.
  else if (total > kept_by.length)
    output.note(`messages that keep it, also as their content or code: ${total}`);
}
