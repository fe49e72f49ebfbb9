import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { NETWORK_CHANNEL, NETWORK_POST, nodeIdOf, type Runner } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { NODE_CONFIG } from '../testing/namesake.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir } from '../testing/run.ts';
import { confirmPrograms, findComputeAbility, listRunners } from './ability.ts';

test('who runs programs is the latest word of the schedulers that the core node trusts, and nobody else’s', async () => {
  const [scheduler, busy, stranger] = [
    createSigner(generatePrivateKey()),
    createSigner(generatePrivateKey()),
    createSigner(generatePrivateKey()),
  ];
  await using home = await createTestDir();
  await using core = await startCore(home.path, {
    SKERRY_CORE_SCHEDULERS: `${scheduler.address},${busy.address}`,
  });
  let decidedMs = Date.now();
  const announce = (signer: typeof scheduler, runners: readonly Runner[], secondsAhead = 0) =>
    new CoreClient({ url: core.url, signer }).postMessage({
      ...(secondsAhead > 0 && { timestamp: Math.floor(Date.now() / 1000) + secondsAhead }),
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.runners, content: { runners, decided_at_ms: decidedMs++ } },
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
  const ability = { machines: true, programs: true, text: 'virtual machines' };
  const promised = (urls: Parameters<typeof confirmPrograms>[1], signal = AbortSignal.abort()) =>
    confirmPrograms(ability, urls, signal);
  const urls = { core: core.url, scheduler: 'http://127.0.0.1:9' };
  assert.deepEqual(await promised(urls), ability);
  // A list that counts no more is still among the latest.
  await announce(scheduler, []);
  assert.deepEqual(await listRunners(core.url), []);
  assert.deepEqual(await promised(urls), {
    machines: true,
    programs: false,
    text: 'virtual machines; no programs yet: the scheduler has not listed this node',
  });
  assert.match((await promised({ core: core.url })).text, /no programs: the core node and the scheduler/);
  const waiting = promised(urls, new AbortController().signal);
  await announce(scheduler, [runnerOf(scheduler)]);
  assert.deepEqual(await waiting, ability, 'it is waited for');
  // More than are looked at of one: another one's list is not hidden by them.
  for (let list = 0; list < 8; list++) await announce(busy, [], 5);
  assert.deepEqual(await listRunners(core.url), [runnerOf(scheduler)]);
});

test('a compute node that is too busy to answer as it comes up is asked again', async () => {
  let isBusy = true;
  await using node = await replying((_, response) => {
    if (isBusy) response.statusCode = 503;
    const body = isBusy ? {} : NODE_CONFIG;
    isBusy = false;
    return body;
  });
  const { text } = await findComputeAbility(node.url, new AbortController().signal);
  assert.equal(text, 'virtual machines with hardware acceleration (KVM)');
  isBusy = true;
  const ended = await findComputeAbility(node.url, AbortSignal.abort());
  assert.equal(ended.text, 'capabilities unknown');
});
