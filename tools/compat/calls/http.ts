import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { World } from '../world.ts';
import { zippedApp } from './programs.ts';

/** The SDK's one client for everything, which most of its guides begin with: it calls the others with its own settings. */

const TYPE = 'compat-http';
const reader = (world: World) => world.client('AlephHttpClient');

/** A message that is made by the client with an account; it must be in force. */
const makes = (method: string, config: (world: World) => object, noted?: string): Call => ({
  name: `http.${method}`,
  async run(world) {
    const client = world.client('AuthenticatedAlephHttpClient');
    const { item_hash } = await client[method]({ channel: world.channel, sync: true, ...config(world) });
    assert.equal(await world.statusOf(item_hash), 'processed');
    if (noted !== undefined) world.note(noted, item_hash);
  },
});

export const httpCalls: readonly Call[] = [
  makes('createPost', () => ({ postType: TYPE, content: { text: 'by http' } }), 'http post'),
  makes('createAggregate', ({ account }) => ({
    address: account.address,
    key: TYPE,
    content: { colour: 'green' },
  })),
  makes('createStore', () => ({ fileObject: Buffer.from('by http'), storageEngine: 'ipfs' })),
  makes('createProgram', () => ({ file: zippedApp, entrypoint: 'main:app' })),
  makes(
    'createInstance',
    () => ({ image: 'debian:12', authorized_keys: [], metadata: { name: TYPE } }),
    'vm',
  ),
  {
    name: 'http.getPost',
    async run(world) {
      const post = await reader(world).getPost({ types: TYPE, channels: [world.channel] });
      assert.equal(post.content.text, 'by http');
    },
  },
  {
    name: 'http.getPosts',
    async run(world) {
      const { posts } = await reader(world).getPosts({ types: TYPE, channels: [world.channel] });
      assert.deepEqual(
        posts.map(({ hash }: { hash: string }) => hash),
        [world.noted('http post')],
      );
    },
  },
  {
    name: 'http.getMessage',
    async run(world) {
      const { content } = await reader(world).getMessage(world.noted('http post'));
      assert.equal(content.content.text, 'by http');
    },
  },
  {
    name: 'http.getMessages',
    async run(world) {
      const { messages } = await reader(world).getMessages({ hashes: [world.noted('http post')] });
      assert.equal(messages.length, 1);
    },
  },
  {
    name: 'http.getMessageError',
    run: async (world) => void (await reader(world).getMessageError(world.noted('http post'))),
    theirs: 'the SDK asks the public network, whatever host it was given',
  },
  makes('forget', (world) => ({ hashes: [world.noted('http post'), world.noted('vm')] })),
];
