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

/** Half a CPU second, most of it the verifier. */

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
  const data = { phase: 'running', node_address: node.address };
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
