import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import type { Call } from '../call.ts';
import type { Loose } from '../sdk.ts';
import type { World } from '../world.ts';

interface Frame {
  readonly item_hash: string;
  readonly type: string;
}

const LOOK_AGAIN_MS = 50;

/** Frames until so many have come. The SDK keeps them in the socket, and tells nobody. */
async function readFrames(socket: Loose, count: number): Promise<Frame[]> {
  try {
    for (;;) {
      const frames = socket.getData() as Frame[];
      if (frames.length >= count) return frames;
      await setTimeout(LOOK_AGAIN_MS);
    }
  } finally {
    socket.closeSocket();
  }
}

async function untilOpen(socket: Loose): Promise<Loose> {
  const raw = socket.getSocket();
  const failed = Promise.withResolvers<never>();
  raw.addEventListener('error', ({ message }: { message?: string }) => failed.reject(new Error(message)));
  raw.addEventListener('close', () => failed.reject(new Error('the node closed the socket')));
  const opened = Promise.withResolvers<void>();
  raw.addEventListener('open', () => opened.resolve());
  if (raw.readyState === 1) return socket;
  await Promise.race([opened.promise, failed.promise]);
  return socket;
}

const open = async (world: World, query: object): Promise<Loose> =>
  untilOpen(
    await world.client('BaseMessageClient').getMessagesSocket({ channels: [world.channel], ...query }),
  );

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
