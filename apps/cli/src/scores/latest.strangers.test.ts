import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ComputedScores,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishScores,
} from '@skerry/client';
import { METRICS_POST_TYPES, SCORING_CHANNEL } from '@skerry/protocol';
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
