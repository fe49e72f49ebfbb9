import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createSigner,
  generatePrivateKey,
  type MessageDraft,
  type Signer,
  signMessage,
} from '@skerry/client';
import { nodeIdOf, sharedText, verifySubmission } from '@skerry/protocol';
import { judgeChange } from './change.ts';

/** A CPU second, most of it the verifier. */

const ID = 'a'.repeat(64);
const [scheduler, node] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
const nodeId = nodeIdOf(node.address);
const [ipv6, reason] = ['fd00:1::1', null];

function signed(signer: Signer, draft: MessageDraft): { cause: string; shared: string } {
  const { body, itemHash } = signMessage(draft, signer);
  const message = verifySubmission(Buffer.from(body), Date.now() / 1_000);
  return { cause: itemHash, shared: sharedText(message)! };
}
const post = (type: string, content: object) => ({ type: 'POST', content: { type, content } });
const judge = (told: { cause: string | null; shared: string | null }, data: object, id = ID) =>
  judgeChange({ id, ...told, data, schedulers: [scheduler.address] });

test('a state that a node signed is proven; another one, or by another node, contradicts it', () => {
  const status = { instance_id: ID, phase: 'running', reason, observed_at_ms: 5, restart_id: null };
  const told = signed(node, post('net-instance-status', status));
  const data = { phase: 'running', reason, node_address: node.address };
  const proven = judge(told, data);
  assert.deepEqual([proven.kind, proven.message?.item_hash], ['proven', told.cause]);
  assert.equal(judge(told, { ...data, phase: 'failed' }).kind, 'wrong');
  assert.equal(judge(told, { ...data, node_address: scheduler.address }).kind, 'wrong');
  assert.equal(judge(told, data, 'b'.repeat(64)).kind, 'wrong', 'it is about another machine');
  assert.equal(judge({ ...told, cause: ID }, data).kind, 'wrong', 'it is another message');
  const changed = told.shared.replace('running', 'stopped');
  assert.equal(judge({ ...told, shared: changed }, data).kind, 'wrong', 'nobody signed it');
});

test('an allocation counts by a believed scheduler; what no message alone says is the word of the node', () => {
  const content = { instance_id: ID, node_id: nodeId, node_address: node.address, ipv6, reason };
  const draft = post('net-allocation', { ...content, decided_at_ms: 5 });
  const data = { node_id: nodeId, ipv6 };
  assert.equal(judge(signed(scheduler, draft), data).kind, 'proven');
  assert.equal(
    judge(signed(scheduler, draft), { ...data, node_id: null }).kind,
    'said',
    'a newer one counts',
  );
  assert.equal(judge(signed(node, draft), data).kind, 'said', 'nobody believes it');
  assert.equal(judge({ cause: null, shared: null }, data).kind, 'said');
  assert.equal(judge({ cause: ID, shared: null }, data).kind, 'said');
});

const owner = createSigner(generatePrivateKey());
const machine = { name: 'web', cpu: 2, memory: 512, disk: 4, image: 'debian:12' };
const ssh_key =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz test@skerry';
const firewall = { allowedPorts: [22] };
const view = { ...machine, ssh_key, owner: owner.address, description: '', firewall };
const why = { code: 'BOOT_FAILED', message: 'it does not boot' };

/** A message of each kind that changes a machine, and what an event says of the same. */
const KINDS: Readonly<Record<string, { by: Signer; draft: MessageDraft; data: Record<string, unknown> }>> = {
  'a machine': { by: owner, draft: { type: 'INSTANCE', content: { ...machine, ssh_key } }, data: view },
  'a change of its name': {
    by: owner,
    draft: { type: 'INSTANCE_UPDATE', content: { instance_id: ID, name: 'shop', firewall } },
    data: { name: 'shop', firewall },
  },
  'an order': {
    by: owner,
    draft: { type: 'INSTANCE_CONTROL', content: { instance_id: ID, action: 'stop' } },
    data: { desired: 'stopped' },
  },
  'a place': {
    by: scheduler,
    draft: post('net-allocation', {
      ...{ instance_id: ID, node_id: nodeId, node_address: node.address, ipv6, reason },
      decided_at_ms: 5,
    }),
    data: { node_id: nodeId, ipv6 },
  },
  'a status': {
    by: node,
    draft: post('net-instance-status', {
      ...{ instance_id: ID, phase: 'failed', reason: why, observed_at_ms: 5, restart_id: null },
    }),
    data: { phase: 'failed', reason: why, node_address: node.address },
  },
};
for (const [kind, { by, draft, data }] of Object.entries(KINDS)) {
  const told = signed(by, draft);
  const id = kind === 'a machine' ? told.cause : ID;

  test(`an event of ${kind} is proven, and is not where any field of it is another`, () => {
    assert.equal(judge(told, data, id).kind, 'proven');
    for (const name of Object.keys(data))
      for (const other of [null, 'another', 7])
        assert.notEqual(judge(told, { ...data, [name]: other }, id).kind, 'proven', `${name}: ${other}`);
  });

  test(`an event of ${kind} is not proven where any character of its message is another`, () => {
    const { shared } = told;
    const proven = [...shared].flatMap((character, at) => {
      const other = character === '1' ? '2' : '1';
      const changed = shared.slice(0, at) + other + shared.slice(at + 1);
      return judge({ ...told, shared: changed }, data, id).kind === 'proven' ? [at] : [];
    });
    assert.deepEqual(
      proven.map((at) => shared.slice(Math.max(0, at - 10), at + 10)),
      [],
    );
  });
}
