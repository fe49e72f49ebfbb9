import { parseArgs } from 'node:util';
import {
  answerRanges,
  continueRanges,
  decodeAnswer,
  decodeQuestion,
  encodeRanges,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  type SyncKey,
} from '@skerry/protocol';
import { connectLine, createTestGossip } from '../../services/core/src/peers/p2p/testing/setup.ts';
import { SetIndex } from '../../services/core/src/peers/sync/set-index.ts';
import { signers } from '../../services/core/src/testing/core.ts';
import { createDice, hexOf } from '../data-set/dice.ts';
import type { Figures } from '../measure/figures.ts';
import { benchTransfer } from './transfer.ts';

const SEED = 1;
const DIFFERENCES = [10, 1_000, 100_000] as const;

const secondsSince = (startMs: number) => (performance.now() - startMs) / 1000;

function createKeys(count: number): SyncKey[] {
  const dice = createDice(SEED);
  return Array.from({ length: count }, (_, n) => ({
    time: 1_700_000_000 + Math.floor(n / 3),
    id: new Uint8Array(Buffer.from(`${hexOf(dice, n, 1, 8)}00000000`, 'hex')),
  }));
}

/** Both sides of a session, one after another, over the bytes that would be sent. */
function reconcileOnce(own: SetIndex, other: SetIndex) {
  let open: readonly Range[] = openQuestion(own);
  let [bytes, rounds, lacks] = [0, 0, 0];
  for (; open.length > 0; rounds++) {
    const question = encodeRanges(open.slice(0, QUESTION_RANGES_MAX));
    const answer = encodeRanges(answerRanges(other, decodeQuestion(question)));
    const next = continueRanges(own, decodeAnswer(answer));
    bytes += question.length + answer.length;
    lacks += next.lacks.length;
    open = [...next.open, ...open.slice(QUESTION_RANGES_MAX)];
  }
  return { bytes, rounds, lacks };
}

function benchRanges(figures: Figures, count: number): void {
  const keys = createKeys(count);
  const heapBefore = process.memoryUsage().arrayBuffers;
  const startMs = performance.now();
  const all = SetIndex.of(keys);
  const built = secondsSince(startMs);
  const perKey = (process.memoryUsage().arrayBuffers - heapBefore) / count;
  figures.group(`reconciling ${count.toLocaleString('en')} messages`);
  figures.add('building the index', 's', built);
  figures.add('index in memory, a message', 'bytes', perKey);
  for (const differences of DIFFERENCES) {
    const every = Math.floor(count / differences);
    const lacking = SetIndex.of(keys.filter((_, n) => n % every !== Math.floor(every / 2)));
    const beginMs = performance.now();
    const { bytes, rounds, lacks } = reconcileOnce(lacking, all);
    const name = `${lacks.toLocaleString('en')} differences`;
    figures.add(`${name}, both sides`, 's', secondsSince(beginMs));
    figures.add(`${name}, what is sent`, 'MB', bytes / 1e6);
    figures.add(`${name}, round trips`, '', rounds);
  }
}

const HOPS = 3;
const GOSSIPED = 300;

/** From the answer to a client to being durable three steps away. */
async function benchGossip(figures: Figures): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const nodes = [];
  for (let seed = 1; seed <= HOPS + 1; seed++) nodes.push(await createTestGossip(stack, seed));
  await connectLine(nodes);
  const [first, last] = [nodes[0]!, nodes.at(-1)!];
  const send = (n: number) =>
    first.core.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n } } });
  for (let n = 0; last.core.rooms.sync.set.index.size === 0; n++) {
    await send(n);
    await Promise.race([last.nextCommitted(), new Promise((done) => setTimeout(done, 500))]);
  }
  const times: number[] = [];
  let lost = 0;
  for (let n = 0; n < GOSSIPED; n++) {
    const kept = last.nextCommitted();
    await send(1_000 + n);
    const startMs = performance.now();
    const isHere = await Promise.race([
      kept.then(() => true),
      new Promise<boolean>((done) => setTimeout(() => done(false), 2_000)),
    ]);
    if (isHere) times.push(performance.now() - startMs);
    else lost++;
  }
  figures.group(`gossip over ${HOPS} hops, until durable at the last`);
  figures.addTimes('a message', times);
  figures.add('lost', '', lost, { goal: { of: 'median', most: 0 } });
}

/** Keeping in step: reconciliation, a node that begins with nothing, gossip. */
export async function benchSync(figures: Figures, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      /** `transfer`: the other parts are left out. */
      only: { type: 'string' },
      /** Several times: one transfer after another, since what it costs grows with the indexes. */
      messages: { type: 'string', multiple: true, default: ['60000', '240000'] },
      set: { type: 'string', default: '1000000' },
    },
  });
  if (values.only !== 'transfer') benchRanges(figures, Number(values.set));
  if (values.only !== 'transfer') await benchGossip(figures);
  for (const count of values.messages) await benchTransfer(figures, Number(count));
}
