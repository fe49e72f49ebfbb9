import { setTimeout as delay } from 'node:timers/promises';
import { channelName, type End, type FromReaders, type Plan } from './plan.ts';
import { SocketReader } from './reader.ts';

/** A process of readers. It opens them a few at a time, and tells its counts once a second. */

const OPENING_AT_ONCE = 32;
const TELL_MS = 1_000;
/** How long the last messages may be on their way. */
const CATCH_UP_MS = 60_000;
const LOOK_MS = 200;
const OPEN_BRACKET = '<'.charCodeAt(0);

const plan = JSON.parse(process.argv[2]!) as Plan;
const tell = (message: FromReaders) => process.send!(message);

const counts = { open: 0, frames: 0, gaps: 0, duplicates: 0, ended: 0 };
let isEnding = false;

/** The number that each reader had last, of each channel that it follows. */
const followed: Map<number, number>[] = [];

/** `<channel:number>` */
function markIn(text: Buffer): { channel: number; number: number } {
  const from = text.indexOf(OPEN_BRACKET);
  const [channel, number] = text
    .toString('latin1', from + 1, from + 24)
    .split('>', 1)[0]!
    .split(':');
  return { channel: Number(channel), number: Number(number) };
}

function note(last: Map<number, number>, text: Buffer): void {
  const { channel, number } = markIn(text);
  const before = last.get(channel);
  counts.frames++;
  if (before !== undefined && number <= before) counts.duplicates++;
  else if (before !== undefined && number > before + 1) counts.gaps += number - before - 1;
  last.set(channel, Math.max(number, before ?? number));
}

/** One channel is asked for in several ways. */
const ofChannel = [
  (name: string) => `channels=${name}`,
  (name: string) => `tags=${name}&msgTypes=POST`,
  (name: string) => `channels=${name}&contentTypes=soak&excludeContent=false`,
];

function openReader(query: string): Promise<void> {
  const last = new Map<number, number>();
  followed.push(last);
  return new Promise((resolve) => {
    new SocketReader(plan.port, `/api/ws0/messages?${query}`, {
      onOpen() {
        counts.open++;
        resolve();
      },
      onText: (text) => note(last, text),
      onEnd() {
        if (!isEnding) counts.ended++;
      },
    });
  });
}

function openSlow(): Promise<void> {
  return new Promise((resolve) => {
    const reader: SocketReader = new SocketReader(plan.port, '/api/ws0/messages?history=0', {
      onOpen() {
        counts.open++;
        reader.pause();
        resolve();
      },
      onText() {},
      onEnd() {},
    });
  });
}

async function openAll(): Promise<void> {
  const jobs = [
    ...Array.from({ length: plan.slow }, () => openSlow),
    ...Array.from({ length: plan.greedy }, () => () => openReader('history=199')),
    ...Array.from({ length: plan.readers }, (_, index) => () => {
      const name = channelName(index % plan.channels);
      return openReader(ofChannel[index % ofChannel.length]!(name));
    }),
  ];
  const work = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) await job();
  };
  await Promise.all(Array.from({ length: OPENING_AT_ONCE }, work));
  tell({ kind: 'ready' });
}

const countBehind = (last: readonly number[]) =>
  followed.filter((one) => one.size === 0 || [...one].some(([channel, number]) => number < last[channel]!))
    .length;

async function end(last: readonly number[]): Promise<void> {
  for (const until = Date.now() + CATCH_UP_MS; countBehind(last) > 0 && Date.now() < until; )
    await delay(LOOK_MS);
  isEnding = true;
  tell({ kind: 'result', ...counts, behind: countBehind(last) });
  process.disconnect!();
  process.exit(0);
}

process.on('message', ({ last }: End) => void end(last));
setInterval(() => tell({ kind: 'counts', ...counts }), TELL_MS);
await openAll();
