import type { NetworkPostView } from '@skerry/protocol/api/core/messages';
import { AppError, parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import {
  addressesOf,
  type DateOptions,
  listQueryOf,
  type OrderOptions,
  type PageOptions,
  pageOf,
} from '../messages/filters.ts';
import { jsonText, plainText, renderFields, renderTime } from '../output/text.ts';

export interface PostListOptions extends DateOptions, OrderOptions, PageOptions {
  readonly address?: string;
  readonly type?: string;
  readonly ref?: string;
  readonly channel?: string;
  readonly tag?: string;
  readonly hash?: string;
}

/** Amends of a post that are told, the newest. */
const AMENDS_SHOWN = 100;

/** The post's own hash, and that of the amend that it has its content from. */
const originalOf = (post: NetworkPostView) => post.original_item_hash ?? post.hash ?? post.item_hash;

const contentOf = (post: NetworkPostView) => jsonText(post.content, 2);

export async function listPosts({ reader, output }: Context, options: PostListOptions): Promise<void> {
  const { type: types, ref: refs, channel: channels, tag: tags, hash: hashes } = options;
  const answer = await reader.listPosts({
    ...listQueryOf(options),
    ...{ types, refs, channels, tags, hashes },
    addresses: await addressesOf(options.address),
  });
  const rows = answer.posts.map((post) => [
    renderTime(post.time ?? 0),
    plainText(post.original_type ?? post.type ?? ''),
    plainText(post.channel ?? ''),
    plainText(post.address),
    originalOf(post),
    originalOf(post) === post.item_hash ? '' : 'yes',
  ]);
  const pagination = pageOf(answer);
  output.result(
    { posts: answer.posts, pagination, next_cursor: answer.next_cursor ?? null },
    output.table(['TIME', 'TYPE', 'CHANNEL', 'OWNER', 'HASH', 'AMENDED'], rows, 'no posts'),
  );
  output.page(pagination, 'posts');
}

/** A node that lies writes no more than a hash into a command that is pasted. */
const isHashLike = (ref: unknown): ref is string =>
  typeof ref === 'string' && /^[0-9A-Za-z]{46,100}$/.test(ref);

/** Why there is no such post. Who posted an amend has its hash at hand, and not that of the post. */
async function nameMissing(reader: Context['reader'], hash: string): Promise<AppError> {
  const { messages } = await reader.findMessages({ hashes: hash, msgTypes: 'POST', limit: 1 });
  const content = messages[0]?.content as { readonly type?: unknown; readonly ref?: unknown } | undefined;
  const target = content?.type === 'amend' && isHashLike(content.ref) ? content.ref : undefined;
  const message =
    target === undefined ? `there is no post ${hash} in force` : `${hash} is no post, it amends ${target}`;
  const hint = target === undefined ? `skerry message get ${hash}` : `skerry post get ${target}`;
  return new AppError('MESSAGE_NOT_FOUND', message, { details: { hint } });
}

/** A post as it is now, with the messages that amended it. @throws AppError MESSAGE_NOT_FOUND */
export async function getPost({ reader, output }: Context, text: string): Promise<void> {
  const hash = parseItemHash(text);
  const { posts } = await reader.listPosts({ hashes: hash, limit: 1 });
  const [post] = posts;
  if (!post) throw await nameMissing(reader, hash);
  const original = originalOf(post);
  const found = await reader.findMessages({
    ...{ refs: original, contentTypes: 'amend', msgTypes: 'POST', limit: AMENDS_SHOWN },
    contentFormat: 'none',
  });
  const amends = found.messages.map(({ item_hash, sender, time }) => ({ item_hash, sender, time }));
  const { total } = pageOf(found);
  output.result(
    { ...post, amends, amends_total: total },
    renderFields([
      ['item_hash', original],
      ['latest', post.item_hash === original ? undefined : post.item_hash],
      ['type', plainText(post.original_type ?? post.type ?? '')],
      ['ref', typeof post.ref === 'string' ? plainText(post.ref) : undefined],
      ['channel', plainText(post.channel ?? '')],
      ['owner', plainText(post.address)],
      ...amends.map((one): [string, string] => [
        'amended',
        `${renderTime(one.time)} ${plainText(one.item_hash)}`,
      ]),
      ['content', contentOf(post)],
    ]),
  );
  if (total > amends.length) output.note(`the ${amends.length} newest amends, of ${total}`);
}
