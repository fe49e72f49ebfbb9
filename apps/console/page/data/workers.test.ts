import assert from 'node:assert/strict';
import { test } from 'node:test';

/** A browser in which workers neither load nor fail, until one does. */
const workers: Silent[] = [];
class Silent {
  onmessage: ((event: { data: unknown }) => void) | undefined;
  isEnded = false;
  constructor() {
    workers.push(this);
  }
  postMessage({ id }: { id: number }) {
    this.onmessage?.({ data: { kind: 'answer', id, answer: ['debian:12'] } });
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
  workers[1]!.onmessage?.({ data: { kind: 'ready' } });
  mock.timers.tick(60_000);
  assert.deepEqual(await next, ['debian:12']);
  assert.equal(workers[1]!.isEnded, false);
});
