import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ComputedScores,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishScores,
} from '@skerry/client';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

/** No more than what makes it a message of scores. */
const NO_SCORES = {
  content: { version: '1.1', tags: [], scores: { ccn: [], crn: [] } },
  files: new Map(),
  newest: null,
} as unknown as ComputedScores;

test('the latest scores are those of publishers that the core node trusts; whoever wants a stranger’s names them', async () => {
  const [monitor, stranger] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, { SKERRY_CORE_SCORING_PUBLISHERS: monitor.address });
  const publish = (signer: typeof monitor) =>
    publishScores(new CoreClient({ url: core.url, signer }), NO_SCORES);
  const latest = async (...more: string[]) => {
    const { code, out } = await skerryHere(process.env, [
      '--core',
      core.url,
      '--json',
      'score',
      'latest',
      ...more,
    ]);
    return code === 0 ? JSON.parse(out).item_hash : code;
  };
  const forged = await publish(stranger);
  assert.notEqual(await latest(), forged);
  const real = await publish(monitor);
  const newest = await publish(stranger);
  assert.equal(await latest(), real);
  assert.equal(await latest('--publisher', stranger.address), newest);
});
