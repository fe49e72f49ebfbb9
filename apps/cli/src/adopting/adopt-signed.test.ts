import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  buildNetworkMessage,
  buildStoredMessage,
  CoreClient,
  call,
  createSigner,
  publishMessage,
  type Signer,
} from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import {
  CREDIT_CHANNEL,
  CREDIT_POST,
  LIMITS,
  METRICS_POST_TYPES,
  PRICING_KEY,
  SCORING_CHANNEL,
} from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { until } from '../testing/shell.ts';
import { draftOf } from './copies.ts';
import { ADOPTED } from './kinds.ts';

const OWNER = `0x${'a'.repeat(40)}`;
const HOUR = 3_600;
/** Lines of a charge. */
const LONG = 200;
const WAIT_MS = 60_000;

const post = (type: string, content: object) => ({ type: 'POST', content: { type, content } });
const grant = (ref: string, amount: number) =>
  post(CREDIT_POST.distribution, {
    distribution: { token: 'CREDIT', chain: 'ETH', credits: [{ address: OWNER, amount, ref }] },
  });
/** @param lines each of another resource */
const charge = (start: number, nanocredits: number, lines = 1) =>
  post(CREDIT_POST.expense, {
    expense: {
      ...{ start_date: start, end_date: start + HOUR },
      credits: Array.from({ length: lines }, (_, at) => ({
        ...{ address: OWNER, ref: at.toString(16).padStart(64, '0') },
        nanocredits: String(nanocredits),
      })),
    },
  });

type Draft = { readonly type: string; readonly content: object };

/** Signs what it is given at some time, in the network form or as an envelope, and has a core node take it. */
async function say(
  url: string,
  signer: Signer,
  { channel, form = 'network' }: { channel: string; form?: 'network' | 'envelope' },
  draft: Draft,
  time: number,
) {
  const content = draft.content as Readonly<Record<string, unknown>>;
  if (form === 'envelope') {
    const kept = await new CoreClient({ url, signer }).postMessage({ ...draft, channel, timestamp: time });
    return kept.item_hash;
  }
  const { body, itemHash } = buildNetworkMessage(
    { type: draft.type, content, channel, time, sync: true },
    signer,
  );
  await publishMessage(url, body);
  return itemHash;
}

/** A moment that has begun, and before which everything is that is there by now. Unix seconds */
async function afterNow(): Promise<number> {
  const moment = Math.floor(Date.now() / 1000) + 1;
  await until('it has begun', WAIT_MS, async () => Date.now() >= moment * 1_000);
  return moment;
}

const balanceOf = async (url: string, time?: number) =>
  (
    await call(url, CREDITS_API.getBalance, {
      params: { address: OWNER },
      query: time === undefined ? {} : { time },
    })
  ).credit_balance;

test('the key of a credit service leaks: another one adopts what it signed, and balances stay', async () => {
  await using home = await createTestDir();
  const keyFile = join(home.path, 'new');
  const old = createSigner(await loadOrCreateKeyFile(join(home.path, 'old')));
  const next = createSigner(await loadOrCreateKeyFile(keyFile));
  const now = Math.floor(Date.now() / 1000);
  const moment = now - 1;
  const adopt = async (url: string, ...more: string[]) => {
    const given = [
      'credit',
      'adopt',
      old.address,
      '--until',
      String(moment),
      '--key-file',
      keyFile,
      '--json',
    ];
    const environment = { SKERRY_HOME: home.path, SKERRY_CORE_URL: url };
    const { out, err, code } = await skerryHere(environment, [...given, ...more]);
    assert.equal(code, 0, err);
    const { signed, signed_before: before, too_late: late, unreadable, publishers } = JSON.parse(out);
    assert.deepEqual([unreadable, publishers], [0, [next.address]]);
    return [signed, before, late];
  };
  let balance: unknown;
  let earlier: unknown;
  const dir = join(home.path, 'core');
  {
    await using core = await startCore(dir, { SKERRY_CORE_CREDIT_PUBLISHERS: old.address });
    const tell = (draft: Draft, time: number, form?: 'envelope') =>
      say(core.url, old, { channel: CREDIT_CHANNEL, ...(form ? { form } : {}) }, draft, time);
    const first = await tell(grant('welcome', 5_000), now - 500);
    await tell(charge(now - 400, 1_000_000_000_000), now - 400);
    // Longer than what lists repeat.
    await tell(charge(now - 390, 1_000_000_000, LONG), now - 390);
    await tell(charge(now - 380, 1_000_000_000, LONG), now - 380, 'envelope');
    await tell(
      { type: 'AGGREGATE', content: { key: PRICING_KEY, content: { instance: { compute_unit: 7 } } } },
      now - 300,
    );
    [balance, earlier] = [await balanceOf(core.url), await balanceOf(core.url, now - 450)];
    // A thief grants, today and with a date of an hour ago, and takes back what was there.
    await tell(grant('theft', 1_000_000), now);
    await tell(grant('old theft', 1_000_000), now - HOUR);
    for (const form of [undefined, 'envelope'] as const)
      await tell(charge(now - 2 * HOUR, 1_000_000_000, LONG + Number(form === undefined)), now - HOUR, form);
    await new CoreClient({ url: core.url, signer: old }).forget([first]);
    assert.notEqual(await balanceOf(core.url), balance);
    assert.deepEqual(await adopt(core.url, '--dry-run'), [5, 0, 4]);
    assert.deepEqual(await adopt(core.url), [5, 0, 4]);
    assert.deepEqual(await adopt(core.url), [0, 5, 4]);
  }
  // While both are trusted nothing counts twice.
  {
    const both = `${old.address},${next.address}`;
    await using core = await startCore(dir, { SKERRY_CORE_CREDIT_PUBLISHERS: both });
    // The thief's grants, and its charge of a credit for each of its lines, which two messages name.
    const expected = Number(balance) + 2_000_000 - (LONG + 1);
    await until('both count', WAIT_MS, async () => Number(await balanceOf(core.url)) === expected);
  }
  await using core = await startCore(dir, { SKERRY_CORE_CREDIT_PUBLISHERS: next.address });
  await until('the new one counts', WAIT_MS, async () => (await balanceOf(core.url)) === balance);
  assert.equal(await balanceOf(core.url, now - 450), earlier);
  // In its turn it is replaced: what it signed is long, and came long after its dates.
  const third = createSigner(await loadOrCreateKeyFile(join(home.path, 'third')));
  const given = ['--until', String(await afterNow()), '--key-file', join(home.path, 'third')];
  const environment = { SKERRY_HOME: home.path, SKERRY_CORE_URL: core.url };
  const { out } = await skerryHere(environment, ['credit', 'adopt', next.address, ...given, '--json']);
  const { signed, unreadable, publishers } = JSON.parse(out);
  assert.deepEqual([signed, unreadable, publishers], [5, 0, [third.address]]);
  const { prices } = await call(core.url, CREDITS_API.listPrices, {});
  assert.equal(prices.instance?.compute_unit, '7');
});

test('measurements that are files are adopted, also those taken back, and by the next key in its turn; what came late is not', async () => {
  await using home = await createTestDir();
  const keyOf = async (name: string) => createSigner(await loadOrCreateKeyFile(join(home.path, name)));
  const [old, next] = [await keyOf('old'), await keyOf('next')];
  await using core = await startCore(home.path, { SKERRY_CORE_SCORING_PUBLISHERS: old.address });
  const now = Math.floor(Date.now() / 1000);
  const measure = async (time: number) => {
    const filler = String(time).padEnd(LIMITS.inlineContentChars, '.');
    const metrics = { version: '1.0', tags: [filler], metrics: { ccn: [], crn: [] } };
    const { body, content, itemHash } = buildStoredMessage(
      { ...post(METRICS_POST_TYPES[0], metrics), channel: SCORING_CHANNEL, time, sync: true },
      old,
    );
    await new CoreClient({ url: core.url, signer: old }).storeFile(new Blob([content]), 'c', itemHash);
    await publishMessage(core.url, body);
    return itemHash;
  };
  const first = await measure(now - 300);
  await measure(now - 200);
  await measure(now - HOUR);
  await new CoreClient({ url: core.url, signer: old }).forget([first]);
  const adopt = async (from: Signer, name: string, moment: number) => {
    const given = ['--until', String(moment), '--key-file', join(home.path, name), '--json'];
    const environment = { SKERRY_HOME: home.path, SKERRY_CORE_URL: core.url };
    const called = ['monitor', 'adopt', from.address, ...given];
    const { out, err, code } = await skerryHere(environment, called);
    assert.equal(code, 0, err);
    const { signed, signed_before: before, too_late: late, unreadable } = JSON.parse(out);
    return [signed, before, late, unreadable];
  };
  await loadOrCreateKeyFile(join(home.path, 'third'));
  assert.deepEqual(await adopt(old, 'next', now - 1), [2, 0, 1, 0]);
  assert.deepEqual(await adopt(old, 'next', now - 1), [0, 2, 1, 0]);
  // The copies are dated to before the leak, and are there since a moment ago.
  assert.deepEqual(await adopt(next, 'third', await afterNow()), [2, 0, 0, 0]);
});

test('what a service has not signed as such is left alone', () => {
  const { credit, monitor } = ADOPTED;
  const of = (type: string, content: object) => ({
    itemHash: 'a'.repeat(64),
    type,
    time: 1.5,
    content: content as Record<string, unknown>,
  });
  const metrics = of('POST', {
    address: '0x1',
    time: 1.5,
    type: METRICS_POST_TYPES[0],
    content: { metrics: {} },
  });
  assert.equal(draftOf(metrics, credit), undefined);
  assert.deepEqual(draftOf(metrics, monitor), {
    ...{ form: 'network', type: 'POST', channel: SCORING_CHANNEL, time: 1.5, sync: true },
    content: { type: METRICS_POST_TYPES[0], content: { metrics: {} } },
  });
  assert.equal(draftOf(of('AGGREGATE', { key: 'security', content: {} }), monitor), undefined);
  assert.equal(draftOf(of('FORGET', { hashes: [] }), monitor), undefined);
  const control = (action: string) => of('INSTANCE_CONTROL', { instance_id: 'b', action });
  assert.equal(draftOf(control('stop'), credit)?.type, 'INSTANCE_CONTROL');
  assert.equal(draftOf(control('start'), credit), undefined);
  assert.equal(draftOf(control('stop'), monitor), undefined);
});
