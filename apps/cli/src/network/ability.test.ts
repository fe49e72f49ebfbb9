import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { NETWORK_CHANNEL, NETWORK_POST, nodeIdOf, type Runner } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { createTestDir } from '../testing/run.ts';
import { listRunners } from './ability.ts';

test('who runs programs is the word of the schedulers that the core node trusts, and nobody else’s', async () => {
  const [scheduler, stranger] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  await using home = await createTestDir();
  await using core = await startCore(home.path, { SKERRY_CORE_SCHEDULERS: scheduler.address });
  const announce = (signer: typeof scheduler, runners: readonly Runner[]) =>
    new CoreClient({ url: core.url, signer }).postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.runners, content: { runners, decided_at_ms: Date.now() } },
    });
  const runnerOf = ({ address }: typeof scheduler): Runner => ({
    node_id: nodeIdOf(address),
    node_address: address,
    url: 'http://127.0.0.1:9',
    runtimes: ['python3'],
  });
  assert.deepEqual(await listRunners(core.url), []);
  await announce(stranger, [runnerOf(stranger)]);
  await announce(scheduler, []);
  assert.deepEqual(await listRunners(core.url), []);
  await announce(scheduler, [runnerOf(scheduler)]);
  assert.deepEqual(await listRunners(core.url), [runnerOf(scheduler)]);
});
