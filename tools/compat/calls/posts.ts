import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { World } from '../world.ts';

/** Beyond so many bytes the SDK sends a content as a file. */
const INLINE_BYTES = 50_000;
export const TAG = 'compat-tag';
export const POST_TYPE = 'compat-note';

const send = (world: World, more: object) =>
  world.client('PostMessageClient').send({
    account: world.account,
    channel: world.channel,
    postType: POST_TYPE,
    sync: true,
    ...more,
  });

const get = (world: World, query: object) =>
  world.client('PostMessageClient').getAll({ channels: [world.channel], ...query });

const hashesOf = (answer: { posts: { hash: string }[] }) => answer.posts.map(({ hash }) => hash).sort();

/** A list that must have exactly the first post. */
const finds = (name: string, query: (world: World) => object): Call => ({
  name: `post.getAll, ${name}`,
  async run(world) {
    assert.deepEqual(hashesOf(await get(world, query(world))), [world.noted('post')]);
  },
});

export const postCalls: readonly Call[] = [
  {
    name: 'post.send, inline, sync',
    async run(world) {
      const content = { text: 'the first', tags: [TAG] };
      const { item_hash } = await send(world, { content, ref: 'compat-ref' });
      assert.match(item_hash, /^[0-9a-f]{64}$/);
      world.note('post', item_hash);
    },
  },
  {
    name: 'post.send, inline, not sync',
    async run(world) {
      const { item_hash } = await send(world, {
        content: { text: 'the second' },
        sync: false,
        postType: 'other',
      });
      world.note('second post', item_hash);
    },
  },
  ...['storage', 'ipfs'].map((storageEngine) => ({
    name: `post.send, as a file of ${storageEngine}`,
    async run(world: World) {
      const content = { text: 'x'.repeat(INLINE_BYTES) };
      const { item_hash, item_type } = await send(world, { content, storageEngine, postType: 'large' });
      assert.equal(item_type, storageEngine);
      const { content: kept } = await world.client('BaseMessageClient').get({ hash: item_hash });
      assert.equal(kept.content.text.length, INLINE_BYTES);
    },
  })),
  {
    name: 'post.get',
    async run(world) {
      const post = await world.client('PostMessageClient').get({ hashes: [world.noted('post')] });
      assert.deepEqual([post.content.text, post.ref], ['the first', 'compat-ref']);
      assert.equal(post.address, world.account.address);
    },
  },
  finds('addresses and types', ({ account }) => ({ addresses: [account.address], types: [POST_TYPE] })),
  finds('types as one text', () => ({ types: POST_TYPE })),
  finds('refs', () => ({ refs: ['compat-ref'] })),
  finds('tags', () => ({ tags: [TAG] })),
  finds('hashes', (world) => ({ hashes: [world.noted('post')] })),
  {
    name: 'post.getAll, pages of one',
    async run(world) {
      const sizes = [];
      for (const page of [1, 2])
        sizes.push((await get(world, { pagination: 1, pageSize: 1, page })).posts.length);
      assert.deepEqual(sizes, [1, 1]);
    },
  },
  {
    name: 'post.getAll, everything (pagination 0)',
    async run(world) {
      const { posts } = await get(world, { pagination: 0, pageSize: 0 });
      assert.ok(posts.length >= 2, `${posts.length} posts`);
    },
  },
  {
    name: 'post.send, amend',
    async run(world) {
      const ref = world.noted('post');
      await send(world, { postType: 'amend', content: { text: 'amended', tags: [TAG] }, ref });
      const post = await world.client('PostMessageClient').get({ hashes: [ref] });
      assert.deepEqual([post.content.text, post.original_type, post.hash], ['amended', POST_TYPE, ref]);
    },
  },
  {
    name: 'post.getCursor',
    async run(world) {
      const { posts, next_cursor } = await world
        .client('PostMessageClient')
        .getCursor({ channels: [world.channel], pagination: 1 });
      assert.deepEqual([posts.length, typeof next_cursor], [1, 'string']);
    },
  },
  {
    name: 'post.getAsyncIterator',
    async run(world) {
      const client = world.client('PostMessageClient');
      const seen = new Set<string>();
      for await (const post of client.getAsyncIterator({ channels: [world.channel], pagination: 1 }))
        seen.add(post.hash);
      assert.equal(seen.size, (await get(world, {})).posts.length);
    },
  },
];
