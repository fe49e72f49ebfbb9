import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient, computeScoresOf, createSigner, generatePrivateKey, publishScores } from '@skerry/client';
import {
  DEFAULT_SCORING_SETTINGS,
  METRICS_POST_TYPES,
  SCORES_POST_TYPE,
  SCORING_CHANNEL,
} from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

const NODE = 'a'.repeat(64);
const HOUR = 3_600;
const TO = Math.floor(Date.now() / 1000 / HOUR) * HOUR;

/** Reports of a node of the last hours by a monitor, and the scores that it publishes of them. */
async function publish(core: CoreClient, hours: number): Promise<string> {
  for (let ago = 1; ago <= hours; ago++) {
    const record = { node_id: NODE, measured_at: TO - ago * HOUR };
    await core.postMessage({
      ...{ type: 'POST', channel: SCORING_CHANNEL, timestamp: TO - ago * HOUR },
      content: {
        type: METRICS_POST_TYPES[0],
        content: { version: '1.0', tags: [], metrics: { ccn: [], crn: [record] } },
      },
    });
  }
  const computed = await computeScoresOf(
    { coreUrl: core.url },
    {
      period: { from: TO - 24 * HOUR, to: TO },
      settings: { ...DEFAULT_SCORING_SETTINGS, skip_without_asn: false },
      ...{ publishers: [core.signer.address], versions: {}, registrations: undefined, tags: [] },
    },
  );
  return (await publishScores(core, computed)).item_hash;
}

test('a score is explained by the scores that count for the node, whoever published last', async () => {
  const [long, began] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_SCORING_PUBLISHERS: `${long.address},${began.address}`,
  });
  const [counting, last] = [
    await publish(new CoreClient({ url: core.url, signer: long }), 3),
    await publish(new CoreClient({ url: core.url, signer: began }), 1),
  ];
  const ask = (...more: string[]) =>
    skerryHere(process.env, ['--core', core.url, 'score', 'explain', NODE.slice(0, 12), ...more]);
  const explain = async (...more: string[]) => {
    const { code, out, err } = await ask('--json', ...more);
    assert.equal(code, 0, err);
    const { scores, hours } = JSON.parse(out);
    return [scores, hours.length];
  };
  assert.deepEqual(await explain(), [counting, 3]);
  assert.deepEqual(await explain('--publisher', began.address), [last, 1]);

  // What one of them signed in another form says nothing of what the other measured.
  await new CoreClient({ url: core.url, signer: began }).postMessage({
    // Of the same second, either may be the newest.
    ...{ type: 'POST', channel: SCORING_CHANNEL, timestamp: Math.floor(Date.now() / 1000) + 5 },
    content: { type: SCORES_POST_TYPE, content: { version: '2.0' } },
  });
  assert.deepEqual(await explain(), [counting, 3]);
  const { err } = await ask();
  assert.match(err, new RegExp(`the last scores of ${began.address} do not count: content.content`));
  const { err: other } = await ask('--from', String(TO - 24 * HOUR), '--to', String(TO));
  assert.equal(other.split('do not count').length, 2, 'it is noted once');
  assert.equal((await explain('--from', String(TO - 24 * HOUR), '--to', String(TO)))[0], null);
});

test('scores whose terms nobody can go by are named, and those that count without them are explained', async () => {
  const [odd, other] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_SCORING_PUBLISHERS: `${odd.address},${other.address}`,
  });
  const [oddCore, otherCore] = [odd, other].map((signer) => new CoreClient({ url: core.url, signer }));
  const explained = await publish(otherCore!, 2);
  const row = { node_id: NODE, total_score: 0.5, measurements: { record_count: 999 } };
  const { item_hash: counting } = await oddCore!.postMessage({
    ...{ type: 'POST', channel: SCORING_CHANNEL, timestamp: Math.floor(Date.now() / 1000) + 5 },
    content: { type: SCORES_POST_TYPE, content: { scores: { ccn: [], crn: [row] }, settings: { x: 1 } } },
  });
  const ask = (...more: string[]) =>
    skerryHere(process.env, ['--core', core.url, ...more, 'score', 'explain', NODE]);
  const told = JSON.parse((await ask('--json')).out);
  assert.deepEqual([told.scores, told.hours.length], [explained, 2]);
  const { err } = await ask();
  assert.ok(err.includes(`${counting} of ${odd.address} cannot be explained: content.content`), err);
  const options = ['--from', String(TO - 24 * HOUR), '--to', String(TO)];
  const { code, err: noted } = await skerryHere(process.env, [
    ...['--core', core.url, 'score', 'compute', ...options],
  ]);
  assert.equal(code, 0, noted);
  assert.match(noted, new RegExp(`the settings of ${counting} are not used: settings`));
});
