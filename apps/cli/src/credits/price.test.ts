import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PriceView } from '@skerry/protocol/api/credit';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { renderPrice } from './price.ts';

test('what an instance or a program costs, and what follows when nobody pays', () => {
  assert.equal(
    renderPrice('instance', 3_958_333_333n, false),
    'costs 14,250 credits an hour, 342,000 a day until it is deleted, also while it is stopped or waits for a node; nothing is stopped when your credit is used up',
  );
  assert.match(
    renderPrice('instance', 1_000_000_000n, true),
    /^costs 3,600 credits an hour, 86,400 a day until it is deleted, .*; it is refused/,
  );
  assert.match(
    renderPrice('program', 1_000_000_000n, true),
    /^costs 3,600 credits an hour, .*, also while nobody calls it; it is refused without credit for a day$/,
  );
  assert.equal(renderPrice('instance', 0n, false), 'costs nothing: no price is published');
});

test('what costs something is named so that it can be copied, and a page says that there are more', async () => {
  const [owner, hash] = [`0x${'1'.repeat(40)}`, '7'.repeat(64)];
  const cost = {
    ...{ item_hash: hash, owner, type: 'program', payment_type: 'credit', compute_units: 1, size_mib: 0 },
    ...{ cost_hold: '0', cost_stream: '0', cost_credit: '0', cost_credit_nano: '1' },
    ...{ consumed_credits: 0, consumed_credits_nano: '248000000', created: 0 },
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
  assert.match(out, new RegExp(`^${hash} +program .* 0\\.248$`, 'm'));
  assert.match(err, /^page 1 of 3 \(41 /m);
});

const priceOf = (blockchain: string, tokenSymbol: string): PriceView => ({
  ...{ blockchain, chain: blockchain.toUpperCase(), tokenSymbol, tokenAmount: '1000000', decimals: 6 },
  ...{ contract: `0x${'1'.repeat(40)}`, receiver: `0x${'2'.repeat(40)}` },
  ...{ creditAmount: 1_000_000, creditBonusAmount: 0, price: 1, bonusRatio: 0 },
});

test('whoever asks for a token that does not buy credits hears which ones do', async () => {
  let sold = [priceOf('ethereum', 'USDC'), priceOf('base', 'DAI')];
  await using service = await replying(({ searchParams }) => {
    const chain = searchParams.get('blockchain');
    return { prices: sold.filter(({ blockchain }) => chain === null || chain === blockchain) };
  });
  const ask = async (chain: string) => {
    const asked = ['credit', 'estimate', chain, 'DOGE', '1', '--credit', service.url, '--json'];
    const { code, err } = await skerryHere({}, ['--core', service.url, ...asked]);
    const told = JSON.parse(err);
    return [code, told.code, told.error];
  };
  const told = 'does not buy credits: what does is USDC on ethereum, DAI on base';
  assert.deepEqual(await ask('ethereum'), [3, 'TOKEN_NOT_SOLD', `DOGE on ethereum ${told}`]);
  assert.deepEqual(await ask('polygon'), [3, 'TOKEN_NOT_SOLD', `DOGE on polygon ${told}`]);
  sold = [];
  assert.deepEqual((await ask('base')).at(-1), 'DOGE on base does not buy credits: no token does here');
});

test('an estimate says from where to send the tokens, and who told where; what is of another amount is none', async () => {
  let estimate = {
    ...{ tokenAmount: '9580000', tokenSymbol: 'USDC', creditAmount: 9_580_000, creditBonusAmount: 0 },
    ...{ totalPrice: 9.58, price: 1, bonusRatio: 0, timestamp: 0 },
  };
  await using service = await replying(({ pathname }) =>
    pathname.endsWith('/token-to-credit') ? estimate : { prices: [priceOf('ethereum', 'USDC')] },
  );
  const asked = ['credit', 'estimate', 'ethereum', 'USDC', '9.58', '--credit', service.url];
  const ask = (...more: string[]) => skerryHere({}, ['--core', service.url, ...asked, ...more]);
  const { code, out, err } = await ask();
  assert.equal(code, 0, err);
  assert.match(out, /^to: 0x2{40}\nfrom: your own address, never an exchange/m);
  assert.ok(out.includes(`\ntold by: ${service.url}, and proven by nothing`), out);
  assert.equal(JSON.parse((await ask('--json')).out).told_by, service.url);
  estimate = { ...estimate, tokenAmount: '95800000' };
  const refused = JSON.parse((await ask('--json')).err);
  assert.deepEqual(
    [refused.code, refused.error],
    ['UNEXPECTED_ANSWER', `${service.url} was asked about the amount 9580000 and told of 95800000`],
  );
});
