import { LIMITS } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import type { ArchivedMessage } from './archive.ts';
import { ARCHIVE_LIMITS } from './limits.ts';

/** Of messages whose contents may be files, the bytes of those that are here. */
async function contentBytes(
  db: Kysely<Schema>,
  messages: readonly ArchivedMessage[],
): Promise<ReadonlyMap<string, number>> {
  const hashes = messages.flatMap((one) => (one.kind === 'message' ? (one.itemHash ?? []) : []));
  if (hashes.length === 0) return new Map();
  const rows = await db
    .selectFrom('files')
    .select(['hash', 'size_bytes'])
    .where('hash', 'in', hashes)
    .execute();
  return new Map(rows.map(({ hash, size_bytes: size }) => [hash, Math.min(size, LIMITS.contentFileBytes)]));
}

/** The first of them that are not too much together, one at least. Pure. */
function fitting(
  messages: readonly ArchivedMessage[],
  contents: ReadonlyMap<string, number>,
): readonly ArchivedMessage[] {
  let bytes = 0;
  const end = messages.findIndex((one, index) => {
    if (one.kind === 'message') bytes += one.body.length + (contents.get(one.itemHash ?? '') ?? 0);
    return index > 0 && bytes > ARCHIVE_LIMITS.togetherBytes;
  });
  return end === -1 ? messages : messages.slice(0, end);
}

/** The messages of an archive, a few at a time, as many as may be in memory together with their contents. */
export async function* partsOf(
  db: Kysely<Schema>,
  messages: readonly ArchivedMessage[],
): AsyncGenerator<readonly ArchivedMessage[]> {
  for (let at = 0; at < messages.length; ) {
    const next = messages.slice(at, at + ARCHIVE_LIMITS.together);
    const part = fitting(next, await contentBytes(db, next));
    yield part;
    at += part.length;
  }
}
