import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import type { Loose } from '../sdk.ts';
import type { World } from '../world.ts';

interface Frame {
  readonly item_hash: string;
  readonly type: string;
}

/** Frames until so many have come. */
async function readFrames(socket: Loose, count: number): Promise<Frame[]> {
  const frames: Frame[] = [];
  if (count === 0) return frames;
  for await (const frame of socket as AsyncIterable<Frame>) {
    frames.push(frame);
    if (frames.length >= count) break;
  }
  return frames;
}

const open = (world: World, query: object): Promise<Loose> =>
  world.client('BaseMessageClient').getMessagesSocket({ channels: [world.channel], ...query });

const send = (world: World, postType: string) =>
  world.client('PostMessageClient').send({
    account: world.account,
    channel: world.channel,
    postType,
    content: { text: 'live' },
    sync: true,
  });

export const socketCalls: readonly Call[] = [
  {
    name: 'message.getMessagesSocket, history',
    async run(world) {
      const socket = await open(world, { history: 3 });
      const frames = await readFrames(socket, 3);
      assert.equal(new Set(frames.map(({ item_hash }) => item_hash)).size, 3);
    },
  },
  {
    name: 'message.getMessagesSocket, live, filtered',
    async run(world) {
      const socket = await open(world, { history: 1, contentTypes: ['compat-live'] });
      await send(world, 'compat-dead');
      const { item_hash } = await send(world, 'compat-live');
      const [frame] = await readFrames(socket, 1);
      assert.equal(frame!.item_hash, item_hash);
    },
  },
  {
    name: 'http.watchMessages',
    theirs:
      'the SDK opens it at the public network, whatever host it was given; BaseMessageClient takes a host',
  },
];
