import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';

interface Posted {
  readonly id?: number;
  readonly kind?: string;
}

/** A browser in which workers neither load nor fail, until one does. */
const workers: Silent[] = [];
class Silent {
  onmessage: ((event: { data: unknown }) => void) | undefined;
  isEnded = false;
  readonly posted: Posted[] = [];
  /** Whether it answers at once what it is asked. */
  isQuick = true;
  constructor() {
    workers.push(this);
  }
  postMessage(posted: Posted) {
    this.posted.push(posted);
    if (this.isQuick) this.answer();
  }
  /** The last task that it was given. */
  get task() {
    return this.posted.findLast(({ id }) => id !== undefined)?.id;
  }
  answer() {
    this.tell({ kind: 'answer', id: this.task, answer: ['debian:12'] });
  }
  tell(data: object) {
    this.onmessage?.({ data });
  }
  terminate() {
    this.isEnded = true;
  }
}
Object.assign(globalThis, {
  ...{ Worker: Silent, VERIFIER_URL: 'verifier.js', document: { baseURI: 'http://core/' } },
  ...{ location: { hash: '' }, addEventListener: () => {} },
});

test('a worker that neither loads nor fails is given up, and another one is started for who asks next', async ({
  mock,
}) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const { verify } = await import('./workers.ts');
  const asked = verify('images', {});
  mock.timers.tick(60_000);
  await assert.rejects(asked, { code: 'TIMED_OUT', message: 'the verifier did not start' });
  assert.deepEqual(
    workers.map(({ isEnded }) => isEnded),
    [true],
  );
  const next = verify('images', {});
  workers[1]!.tell({ kind: 'ready' });
  mock.timers.tick(60_000);
  assert.deepEqual(await next, ['debian:12']);
  assert.equal(workers[1]!.isEnded, false);
});

test('advice comes to the question that it is about while that is open, and the question stays as it is', async () => {
  const { verify } = await import('./workers.ts');
  const { question } = await import('./identity.ts');
  const worker = workers[1]!;
  worker.isQuick = false;
  const by = { chain: 'ETH', address: '0x1', name: 'key', place: 'browser', sign: async () => '' } as const;
  const done = verify('images', {}, { by });
  await turnOver();
  worker.tell({ kind: 'sign', id: worker.task, toSign: { turn: 7, text: 'a text', about: {} } });
  await turnOver();
  const asked = question.value!;
  assert.deepEqual([asked.text, asked.lack.value], ['a text', null]);
  const advise = (turn: number, lack: string) => worker.tell({ kind: 'advice', advice: { turn, lack } });
  advise(6, 'of another one');
  assert.equal(asked.lack.value, null);
  advise(7, 'no room');
  assert.equal(asked.lack.value, 'no room');
  assert.equal(question.value, asked, 'whoever reads it is not sent back to its beginning');
  asked.settle({ isWanted: false });
  await turnOver();
  assert.equal(worker.posted.at(-1)!.kind, 'refused');
  advise(7, 'too late');
  assert.equal(asked.lack.value, 'no room');
  worker.answer();
  await done;
});
