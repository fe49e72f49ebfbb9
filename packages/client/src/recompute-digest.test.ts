import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { DERIVED_KINDS, type DerivedKind, instanceElement, SetSum } from '@skerry/protocol';
import { WAITS_MAX } from './reads/patience.ts';
import { type RecomputedInstances, recomputeInstancesDigest } from './recompute-digest.ts';
import { verdictOnState } from './recomputed-verdict.ts';
import { answering } from './testing/answering.ts';
import { ALONE, id, MESSAGE, message, missing, NOBODY, view } from './testing/made-instance.ts';

const OPTIONS = { max: 10 };
const [LIST, DIGEST] = ['/api/v0/instances', '/api/v0/state/digest/instances'] as const;

/** A node whose list tells this of its one instance, without its message, and whose digest is of that list. */
function listing(told: typeof view) {
  const sum = new SetSum();
  sum.add(instanceElement(told));
  return {
    [DIGEST]: [{ cursor: '0', ...sum.digest() }],
    [LIST]: [
      {
        instances: [{ ...told, shared: [null] }],
        ...{ pagination: { total: 1, page: 1, per_page: 100, total_pages: 1 }, cursor: '0' },
        next_cursor: null,
      },
    ],
  };
}
const alone = { ...view, shared: [null], sources: [id] };
const withoutMessage = { ...listing(view), [ALONE]: [alone] };
const honest = { ...withoutMessage, [MESSAGE]: [message] };

function verdictOf(instances: RecomputedInstances) {
  const whole = { ...instances, isSame: true, isCut: false };
  const kinds = Object.fromEntries(DERIVED_KINDS.map((kind) => [kind, whole])) as Record<
    DerivedKind,
    typeof whole
  >;
  return verdictOnState({
    ...{ messages: whole, instances },
    derived: { kinds, verified: 0, refused: [], onBehalf: 0 },
  });
}

test('a node that lies in its list alone, and counts its digest by that, is contradicted', async () => {
  await using node = await answering(honest);
  assert.equal(verdictOf(await recomputeInstancesDigest({ coreUrl: node.url }, NOBODY, OPTIONS)), 'same');

  await using liar = await answering({ ...honest, ...listing({ ...view, cpu: 7 }) });
  const lie = await recomputeInstancesDigest({ coreUrl: liar.url }, NOBODY, OPTIONS);
  assert.deepEqual([lie.isSame, lie.refused.map(({ itemHash }) => itemHash)], [true, [id]]);
  assert.equal(verdictOf(lie), 'different');
});

test('an instance that changed while it was read is read anew', async () => {
  const [before, now] = [listing({ ...view, name: 'before' }), listing(view)];
  await using node = await answering({
    ...honest,
    [LIST]: [...before[LIST], ...now[LIST]],
    [DIGEST]: [...before[DIGEST], ...now[DIGEST]],
  });
  const compared = await recomputeInstancesDigest({ coreUrl: node.url }, NOBODY, OPTIONS);
  assert.deepEqual([compared.unproven, compared.refused, verdictOf(compared)], [{}, [], 'same']);
});

test('where instances could not be checked, the verdict is not that all is as the node says', async () => {
  await using node = await answering(withoutMessage, missing);
  const compared = await recomputeInstancesDigest({ coreUrl: node.url }, NOBODY, OPTIONS);
  assert.deepEqual([compared.isSame, compared.unproven], [true, { missing: 1 }]);
  assert.equal(verdictOf(compared), 'unchecked');
  for (const reason of ['changed', 'notChecked'] as const)
    assert.equal(verdictOf({ ...compared, unproven: { [reason]: 1 } }), 'unchecked');
  for (const reason of ['delegated', 'dated'] as const)
    assert.equal(verdictOf({ ...compared, unproven: { [reason]: 1 } }), 'same');
  assert.equal(verdictOf({ ...compared, isSame: false, isCut: true }), 'cut');
});

/** An honest node that refuses requests as too many. @param turn from 0 */
async function limiting(refuses: (turn: number) => boolean) {
  let turn = 0;
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url!, 'http://node');
    const isRefused = refuses(turn++);
    response.statusCode = isRefused ? 429 : 200;
    const details = { retry_after: 0 };
    const refusal = { status: 'error', code: 'RATE_LIMITED', error: 'too many', details };
    response.end(JSON.stringify(isRefused ? refusal : (honest as Record<string, unknown[]>)[pathname]![0]));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    turns: () => turn,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('a node that lets in no more for a while is waited for, but not for ever', async () => {
  const waited: number[] = [];
  const options = { ...OPTIONS, onWait: (seconds: number) => void waited.push(seconds) };
  // The digest, the list, and the second request of the instance.
  await using node = await limiting((turn) => [0, 2, 5].includes(turn));
  const compared = await recomputeInstancesDigest({ coreUrl: node.url }, NOBODY, options);
  assert.deepEqual([compared.isSame, compared.unproven, waited], [true, {}, [0, 0, 0]]);

  await using shut = await limiting(() => true);
  const asked = recomputeInstancesDigest({ coreUrl: shut.url }, NOBODY, OPTIONS);
  await assert.rejects(asked, { code: 'RATE_LIMITED' });
  assert.equal(shut.turns(), WAITS_MAX + 1);
});
