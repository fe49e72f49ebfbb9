import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { CREDIT_CHANNEL, CREDIT_POST } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { until } from '../testing/shell.ts';

const WAIT_MS = 60_000;
const DAY = 86_400;
const MACHINE = {
  ...{ name: 'a', cpu: 1, memory: 512, disk: 4, image: 'debian:12' },
  ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz t',
};

test('a machine that the old key had stopped stays so, also where its owner has paid since; a stop that came late is none', async () => {
  await using home = await createTestDir();
  const keyFile = join(home.path, 'key');
  const [old, alice] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
  const next = createSigner(await loadOrCreateKeyFile(keyFile));
  const now = Math.floor(Date.now() / 1000);
  const open = (publisher: string) =>
    startCore(home.path, {
      SKERRY_CORE_CREDIT_PUBLISHERS: publisher,
      SKERRY_CORE_CREDIT_ENFORCEMENT: 'yes',
    });
  let machine = '';
  {
    await using core = await open(old.address);
    const client = new CoreClient({ url: core.url, signer: old });
    const speak = (type: string, said: object, timestamp: number) =>
      client.postMessage({
        type: 'POST',
        channel: CREDIT_CHANNEL,
        content: { type, content: said },
        timestamp,
      });
    const notice = (state: string, timestamp: number) => {
      const said = { address: alice.address, state, credits: 0, runs_out_at: null };
      return speak(CREDIT_POST.notice, { notice: said }, timestamp);
    };
    const credits = [{ address: alice.address, amount: 10_000_000, ref: 'r' }];
    await speak(CREDIT_POST.distribution, { distribution: { credits } }, now - 500);
    machine = (await new CoreClient({ url: core.url, signer: alice }).createInstance(MACHINE)).instance_id;
    await notice('low', now - 400);
    await notice('exhausted', now - 300);
    const stop = (timestamp?: number) =>
      client.postMessage({
        ...{ type: 'INSTANCE_CONTROL', content: { instance_id: machine, action: 'stop' } },
        ...(timestamp === undefined ? {} : { timestamp }),
      });
    await stop(now - 1);
    await notice('ok', now);
    // A thief's, which is kept as rejected.
    await assert.rejects(stop(now - DAY), { code: 'NOT_PERMITTED' });
    const adopt = async () => {
      const given = ['--until', String(now), '--key-file', keyFile, '--json'];
      const environment = { SKERRY_HOME: home.path, SKERRY_CORE_URL: core.url };
      const { out, err, code } = await skerryHere(environment, ['credit', 'adopt', old.address, ...given]);
      assert.equal(code, 0, err);
      const { signed, signed_before: before, too_late: late, unreadable } = JSON.parse(out);
      return [signed, before, late, unreadable];
    };
    assert.deepEqual(await adopt(), [5, 0, 1, 0]);
    assert.deepEqual(await adopt(), [0, 5, 1, 0]);
  }
  await using core = await open(next.address);
  const reader = new CoreClient({ url: core.url });
  const desired = async () => (await reader.getInstance(machine)).desired;
  await until('it is stopped', WAIT_MS, async () => (await desired()) === 'stopped');
});
