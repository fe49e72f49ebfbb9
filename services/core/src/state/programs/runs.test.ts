import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Signer } from '@skerry/client';
import { NETWORK_CHANNEL, NETWORK_POST, nodeIdOf, type ProgramRun, type Runner } from '@skerry/protocol';
import { orderRunners } from '../../api/programs/forward.ts';
import { deliverFor, LOCAL, register, startReceiver } from '../../notify/webhooks/testing/setup.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const runnerOf = (signer: Signer, runtimes = ['nodejs']): Runner => ({
  node_id: nodeIdOf(signer.address),
  node_address: signer.address,
  url: 'http://127.0.0.1:1',
  runtimes,
});

const runOf = (programHash: string): ProgramRun => ({
  run_id: '00000000-0000-4000-8000-000000000000',
  program_hash: programHash,
  started_at_ms: 1,
  duration_ms: 2,
  outcome: 'answered',
  status: 200,
  reason: null,
});

const tellRunners = (core: TestCore, signer: Signer, runners: Runner[], decidedAtMs: number) =>
  core.send(signer, {
    type: 'POST',
    channel: NETWORK_CHANNEL.scheduling,
    content: { type: NETWORK_POST.runners, content: { runners, decided_at_ms: decidedAtMs } },
  });
const tellRuns = (core: TestCore, signer: Signer, runs: unknown[]) =>
  core.send(signer, {
    type: 'POST',
    channel: NETWORK_CHANNEL.programs,
    content: { type: NETWORK_POST.programRuns, content: { runs } },
  });

async function createProgram(core: TestCore): Promise<string> {
  const content = { name: 'a', code: 'x', runtime: 'nodejs', memory: 64, timeout: 1 };
  return (await core.send(signers.alice, { type: 'PROGRAM', content })).body.item_hash;
}

async function listExecuted(core: TestCore) {
  const { body } = await core.get('/events?cursor=0&limit=100');
  return body.events.filter((event: { kind: string }) => event.kind === 'program_executed');
}

describe('runs of programs', () => {
  test('are events by a node that the scheduler names, of a program that is known; by and of others they are nothing', async () => {
    await using core = await createTestCore();
    const program = await createProgram(core);
    await tellRuns(core, signers.node, [runOf(program)]);
    await tellRunners(core, signers.bob, [runnerOf(signers.node)], 1);
    await tellRuns(core, signers.node, [{ ...runOf(program), started_at_ms: 2 }]);
    assert.deepEqual(await listExecuted(core), []);
    await tellRunners(core, signers.scheduler, [runnerOf(signers.node)], 1);
    await tellRuns(core, signers.otherNode, [runOf(program)]);
    const told = await tellRuns(core, signers.node, [
      runOf('0'.repeat(64)),
      { ...runOf(program), started_at_ms: 3 },
    ]);
    assert.equal(told.status, 200);
    const [event, ...others] = await listExecuted(core);
    assert.equal(others.length, 0);
    assert.deepEqual(event.data, {
      ...runOf(program),
      started_at_ms: 3,
      owner: signers.alice.address,
      node_id: nodeIdOf(signers.node.address),
    });
  });

  test('reach the webhooks of the owner', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using receiver = await startReceiver();
    await register(core, signers.alice, { url: receiver.url, events: ['program.executed'] });
    await using _deliverer = deliverFor(core);
    const program = await createProgram(core);
    await tellRunners(core, signers.scheduler, [runnerOf(signers.node)], 1);
    await tellRuns(core, signers.node, [runOf(program)]);
    await receiver.waitFor((all) => all.length === 1);
    const { type, data } = JSON.parse(receiver.received[0]!.body);
    assert.deepEqual(
      [type, data.program_hash, data.outcome, data.owner],
      ['program.executed', program, 'answered', signers.alice.address],
    );
  });

  test('the latest word of a scheduler takes the place of its earlier ones, in any order of arrival', async () => {
    await using core = await createTestCore();
    await tellRunners(core, signers.scheduler, [runnerOf(signers.node)], 9);
    await tellRunners(core, signers.scheduler, [runnerOf(signers.otherNode)], 5);
    assert.deepEqual(
      (await core.rooms.listRunners()).map((one) => one.node_address),
      [signers.node.address],
    );
  });

  test('a node counts at once where there was none, although a compute node asked a moment before', async () => {
    await using core = await createTestCore();
    const program = await createProgram(core);
    const listRunnersOf = async () => {
      const { body } = await core.get(`/programs/${program}/runners`);
      return body.runners.map((one: Runner) => one.node_address);
    };
    await core.get(`/programs/assigned/${nodeIdOf(signers.node.address)}`);
    assert.deepEqual(await listRunnersOf(), []);
    await tellRunners(core, signers.scheduler, [runnerOf(signers.node, ['python3'])], 1);
    assert.deepEqual(await listRunnersOf(), []);
    await tellRunners(core, signers.scheduler, [runnerOf(signers.node)], 2);
    assert.deepEqual(await listRunnersOf(), [signers.node.address]);
    const { body } = await core.post(`/run/${program}`, '{}');
    assert.match(body.error, /ECONNREFUSED/, 'the node is asked');
  });

  test('malformed words are refused', async () => {
    await using core = await createTestCore();
    for (const runs of [
      [],
      [{ ...runOf('0'.repeat(64)), outcome: 'fine' }],
      [{ ...runOf('abc') }],
      Array(101).fill(runOf('0'.repeat(64))),
    ]) {
      const answer = await tellRuns(core, signers.node, runs);
      assert.deepEqual([answer.status, answer.body.code], [400, 'INVALID_CONTENT']);
    }
  });
});

test('a program goes to one node as long as that is there, and to all of them as programs differ', () => {
  const runners = [signers.node, signers.otherNode, signers.bob].map((one) => runnerOf(one));
  const stored = (n: number) =>
    ({
      programHash: String(n).padStart(64, '0'),
      owner: '',
      program: { runtime: { kind: 'named', runtime: 'nodejs', version: null } },
    }) as never;
  const firsts = Array.from({ length: 60 }, (_, n) => orderRunners(runners, stored(n))[0]!.node_id);
  assert.equal(new Set(firsts).size, 3);
  firsts.forEach((first, n) => {
    const without = runners.filter((one) => one.node_id !== firsts[0]);
    const moved = orderRunners(without, stored(n))[0]!.node_id;
    assert.ok(first === firsts[0] || moved === first);
  });
  assert.deepEqual(orderRunners([runnerOf(signers.node, ['wasm'])], stored(1)), []);
});
