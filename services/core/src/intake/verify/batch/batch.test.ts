import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { bytesToHex, type PersonalClaim } from '@skerry/protocol';
import { SeededDice } from '../../../sim/testing/dice.ts';
import { signers } from '../../../testing/core.ts';
import { packTask, runTask } from '../verifier.ts';
import { VERDICTS } from './addon.ts';
import { CLAIMS_MAX, type KeyedClaim, packClaims } from './claims.ts';
import { Suspects } from './suspects.ts';
import { checkForTests, eagerBatch } from './testing/built.ts';
import {
  bytesOf,
  claimOf,
  compareMutant,
  mutate,
  numberOf,
  ORDER,
  signSome,
  startComparison,
} from './testing/mutants.ts';

/** A slice of `npm run soak -- batches`. */
const MUTANTS = 6_000;
const ROUNDS = 40;
const NOW = Math.floor(Date.now() / 1000);

const check = await checkForTests();
const all = signSome();
const keyed = all.map((one): KeyedClaim => ({ claim: claimOf(one)!, key: one.key }));
const verdictOn = (claims: readonly KeyedClaim[]) => {
  const packed = packClaims(claims);
  return check(packed.claims, packed.keys);
};

describe('signatures in batches', () => {
  test('each mutated signature has the verdict that recovery gives', () => {
    const dice = new SeededDice(20);
    const found = startComparison();
    for (let at = 0; at < MUTANTS; at++) compareMutant(check, all, dice, found);
    assert.deepEqual(found.differences, []);
    assert.ok(found.valid > MUTANTS / 10 && found.invalid > MUTANTS / 3 && found.malformed > MUTANTS / 100);
  });

  test('whoever made a round fail is found, and nobody else', async () => {
    const dice = new SeededDice(21);
    const batch = await eagerBatch();
    const learn = batch.start();
    for (const { text, signature, sender } of all)
      assert.ok(learn.checkOf(0)(text, `0x${bytesToHex(signature)}`, sender));
    for (let round = 0; round < ROUNDS; round++) {
      const { checkOf, settle } = batch.start();
      const expected: number[] = [];
      for (let owner = 0; owner < 1 + dice.below(64); owner++) {
        const one = all[dice.below(all.length)]!;
        const signature = Uint8Array.from(one.signature);
        const isBad = dice.chance(0.05);
        if (isBad) signature[40 + dice.below(20)]! ^= 1;
        if (isBad) expected.push(owner);
        assert.ok(checkOf(owner)(one.text, `0x${bytesToHex(signature)}`, one.sender));
      }
      assert.deepEqual(settle(), expected);
    }
  });

  test('errors that cancel each other out in a plain sum are found', () => {
    const [one, other] = [keyed[0]!, keyed[1]!];
    const shift = (claim: PersonalClaim, by: bigint): PersonalClaim => {
      const s = numberOf(claim.rs.subarray(32));
      const digest = (((numberOf(claim.digest) + by * s) % ORDER) + ORDER) % ORDER;
      return { ...claim, digest: bytesOf(digest) };
    };
    const pair = [
      { ...one, claim: shift(one.claim, 7n) },
      { ...other, claim: shift(other.claim, -7n) },
    ];
    assert.equal(verdictOn([one, other]), VERDICTS.holds);
    assert.equal(verdictOn(pair), VERDICTS.fails);
  });

  test('order, repetition and size change nothing; what it cannot judge it does not', () => {
    assert.equal(verdictOn(keyed), VERDICTS.holds);
    assert.equal(verdictOn(keyed.toReversed()), VERDICTS.holds);
    assert.equal(verdictOn(Array.from({ length: 50 }, () => keyed[0]!)), VERDICTS.holds);
    const most = Array.from({ length: CLAIMS_MAX }, (_, at) => keyed[at % keyed.length]!);
    assert.equal(verdictOn(most), VERDICTS.holds);
    assert.equal(verdictOn([...most.slice(1), { ...most[0]!, key: keyed[1]!.key }]), VERDICTS.fails);
    assert.equal(verdictOn([...most, keyed[0]!]), VERDICTS.cannotSay);
    assert.equal(verdictOn([]), VERDICTS.cannotSay);
    assert.equal(check(new Uint8Array(99), new Uint8Array(64)), VERDICTS.cannotSay);
    assert.throws(() => check('no bytes' as never, new Uint8Array(64)), TypeError);
    // A key that is no point, and a claim of a key that is not there.
    assert.equal(
      verdictOn([{ ...keyed[0]!, key: Uint8Array.from(keyed[0]!.key).fill(9, 33) }]),
      VERDICTS.fails,
    );
    const { claims, keys } = packClaims([keyed[0]!]);
    claims[96] = 1;
    assert.equal(check(claims, keys), VERDICTS.fails);
  });

  test('bodies have the same results with batches as without, and so have frames', async () => {
    const batch = await eagerBatch();
    const note = (at: number) => ({ type: 'POST', content: { type: 'note', content: at } });
    const good = Array.from({ length: 8 }, (_, at) => signMessage(note(at), signers.alice).body);
    const { message, ...rest } = JSON.parse(good[0]!) as { message: object };
    const bodies = [
      ...good,
      buildNetworkMessage(note(9), signers.alice).body,
      good[1]!.replace('note', 'NOTE'),
      good[2]!.replace('"0x', '"0xx'),
      // Signed as one text and sent as another with the same meaning: valid, though it makes the batch fail.
      `{"message":${JSON.stringify(message, null, 1)},${JSON.stringify(rest).slice(1)}`,
      '{}',
    ].map((text) => Buffer.from(text));
    const task = (isAlone: boolean, isShared = false) =>
      packTask(bodies, NOW, { shared: bodies.map(() => isShared), alone: bodies.map(() => isAlone) });
    const expected = runTask(task(false)).results;
    // The first round learns the key from its first message.
    for (let round = 0; round < 2; round++) {
      const { results, wrong } = runTask(task(false), batch);
      assert.deepEqual(results, expected);
      assert.deepEqual(wrong, [9, 11]);
    }
    assert.deepEqual(runTask(task(true), batch), { results: expected, wrong: [] });
    assert.deepEqual(runTask(task(false, true), batch).results, runTask(task(false, true)).results);
  });

  test('who made a batch fail is suspected for a while, and the list of suspects has an end', () => {
    const suspects = new Suspects();
    suspects.add('mallory', 0);
    assert.ok(suspects.has('mallory', 59_999) && !suspects.has('mallory', 60_000));
    assert.ok(!suspects.has('alice', 0));
    for (let at = 0; at < 10_000; at++) suspects.add(`${at}`, 1);
    assert.ok(!suspects.has('mallory', 2) && suspects.has('9999', 2));
  });

  test('mutants of one seed are the same again', () => {
    const draw = () =>
      Array.from(
        { length: 20 },
        (
          (dice) => () =>
            mutate(all, dice).name
        )(new SeededDice(3)),
      );
    assert.deepEqual(draw(), draw());
  });
});
