import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { renderPrice } from './price.ts';

test('what an instance costs, and what follows when nobody pays', () => {
  assert.equal(
    renderPrice(3_958_333_333n, false),
    'costs 14,250 credits an hour, 342,000 a day until it is deleted, also while it is stopped or waits for a node; nothing is stopped when your credit is used up',
  );
  assert.match(
    renderPrice(1_000_000_000n, true),
    /^costs 3,600 credits an hour, 86,400 a day until it is deleted, .*; it is refused/,
  );
  assert.equal(renderPrice(0n, false), 'costs nothing: no price is published');
});

test('what costs something is named so that it can be copied, and a page says that there are more', async () => {
  const [owner, hash] = [`0x${'1'.repeat(40)}`, '7'.repeat(64)];
  const cost = {
    ...{ item_hash: hash, owner, type: 'program', payment_type: 'credit', compute_units: 1, size_mib: 0 },
    ...{ cost_hold: '0', cost_stream: '0', cost_credit: '0', cost_credit_nano: '1' },
    ...{ consumed_credits: 0, created: 0 },
  };
  const summary = {
    total_consumed_credits: 0,
    total_cost_hold: '0',
    total_cost_stream: '0',
    total_cost_credit: '0',
  };
  await using node = await replying(() => ({
    summary: { ...summary, resource_count: 41 },
    filters: { address: owner, item_hash: null, payment_type: 'credit' },
    resources: [cost],
  }));
  const { out, code, err } = await skerryHere({}, ['credit', 'costs', owner, '--core', node.url]);
  assert.equal(code, 0, err);
  assert.match(out, new RegExp(`^${hash} +program`, 'm'));
  assert.match(err, /^page 1 of 3 \(41 /m);
});
