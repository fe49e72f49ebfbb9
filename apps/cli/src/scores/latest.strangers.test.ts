import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ComputedScores,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishScores,
} from '@skerry/client';
import { METRICS_POST_TYPES, SCORES_POST_TYPE, SCORING_CHANNEL } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

/** No more than what makes it a message of scores. */
const NO_SCORES = {
  content: { version: '1.1', tags: [], scores: { ccn: [], crn: [] } },
  files: new Map(),
  newest: null,
} as unknown as ComputedScores;

/** A report of an hour in which nobody was there. */
const measure = (core: CoreClient) =>
  core.postMessage({
    type: 'POST',
    channel: SCORING_CHANNEL,
    content: {
      type: METRICS_POST_TYPES[0],
      content: { version: '1.0', tags: [], metrics: { ccn: [], crn: [] } },
    },
  });

test('the latest scores are those of publishers that the core node trusts; whoever wants a stranger’s names them, and hears why there are none', async () => {
  const [monitor, stranger] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, { SKERRY_CORE_SCORING_PUBLISHERS: monitor.address });
  const publish = async (signer: typeof monitor) =>
    (await publishScores(new CoreClient({ url: core.url, signer }), NO_SCORES)).item_hash;
  const latest = async (...more: string[]) => {
    const { code, out, err } = await skerryHere(process.env, [
      '--core',
      core.url,
      '--json',
      'score',
      'latest',
      ...more,
    ]);
    return code === 0 ? JSON.parse(out).item_hash : JSON.parse(err).hint;
  };
  const none = await latest('--publisher', stranger.address);
  assert.match(none, /no measurements are there either/);
  assert.ok(none.includes(`does not count what ${stranger.address} measures`), none);
  assert.ok(!(await latest()).includes('does not count'));
  await measure(new CoreClient({ url: core.url, signer: stranger }));
  const measured = await latest('--publisher', stranger.address);
  assert.ok(measured.includes(`skerry score compute --publisher ${stranger.address}`), measured);
  assert.match(measured, /SKERRY_MONITOR_SCORES_EVERY_HOURS/);
  const forged = await publish(stranger);
  assert.notEqual(await latest(), forged);
  const real = await publish(monitor);
  const newest = await publish(stranger);
  assert.equal(await latest(), real);
  assert.equal(await latest('--publisher', stranger.address), newest);
});

/** Scores whose rows these are, dated so many seconds from now. */
const publishRows = (core: CoreClient, secondsAhead: number, scores: unknown) =>
  core.postMessage({
    ...{ type: 'POST', channel: SCORING_CHANNEL, timestamp: Math.floor(Date.now() / 1000) + secondsAhead },
    content: { type: SCORES_POST_TYPE, content: { version: '1.1', scores, measured_at: 7 } },
  });

test('a publication or a row in another form is named, and hides no others', async () => {
  const [monitor, odd] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_SCORING_PUBLISHERS: `${monitor.address},${odd.address}`,
  });
  const clientOf = (signer: typeof monitor) => new CoreClient({ url: core.url, signer });
  const ask = (...more: string[]) =>
    skerryHere(process.env, ['--core', core.url, ...more, 'score', 'latest']);
  const row = { node_id: 'a'.repeat(64), total_score: 0.5, unknown: 1 };
  const { item_hash: shown } = await publishRows(clientOf(monitor), 0, {
    ccn: [],
    crn: [{ node_id: 'x', total_score: 1 }, row],
  });
  const { item_hash: hidden } = await publishRows(clientOf(odd), 5, { ccn: 'none' });
  const { code, out, err } = await ask();
  assert.equal(code, 0, err);
  assert.match(out, /compute +aaaaaaaa.* 50\.00 %/);
  assert.ok(out.includes(shown), out);
  const why = `content.content.scores of ${hidden} has neither a list ccn nor a list crn`;
  assert.ok(err.includes(`the last scores of ${odd.address} do not count: ${why}`), err);
  assert.ok(err.includes(`rows of ${shown} do not count: crn[0]: its node_id is not`), err);
  const told = JSON.parse((await ask('--json')).out);
  assert.deepEqual(told.scores, { ccn: [], crn: [row] });
  assert.deepEqual(
    told.odd.map(({ at }: { at: string }) => at),
    ['crn[0]'],
  );
  assert.deepEqual(told.odd_publications, [
    { publisher: odd.address, code: 'INVALID_CONTENT', message: why },
  ]);
  // Where there are no others, it is why there is nothing to show.
  const alone = await skerryHere(process.env, [
    ...['--core', core.url, '--json', 'score', 'latest', '--publisher', odd.address],
  ]);
  const refusal = JSON.parse(alone.err);
  assert.deepEqual([alone.code, refusal.code, refusal.error], [2, 'INVALID_CONTENT', why]);
});
