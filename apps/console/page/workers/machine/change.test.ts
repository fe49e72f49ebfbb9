import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createSigner,
  generatePrivateKey,
  type MessageDraft,
  type Signer,
  signMessage,
} from '@skerry/client';
import { instanceAddress, nodeIdOf, sharedText, verifySubmission } from '@skerry/protocol';
import { judgeAddress } from '../facts.ts';
import { listingNode } from '../testing/listing.ts';
import { judgeChange, judgeEvent } from './change.ts';

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
  const data = { node_id: nodeId, node_address: node.address, ipv6 };
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

/** A core node that lists these allocations, newest first. */
const listing = (told: readonly { cause: string; shared: string }[]) =>
  listingNode(
    told.map(({ cause, shared }) => ({
      ...{ item_hash: cause, item_type: 'inline', item_content: shared, shared },
      // Nothing of it is read of what was signed.
      ...{ type: 'POST', chain: 'ETH', sender: JSON.parse(shared).address, signature: '', time: 0 },
    })),
  );

test('a place that its allocation does not say is contradicted, unless a newer one that is signed says it', async () => {
  const place = { node_id: nodeId, node_address: node.address, ipv6 };
  const elsewhere = { ...place, ipv6: 'fd00:2::1' };
  const allocate = (signer: Signer, where: object, decided_at_ms: number) =>
    signed(signer, post('net-allocation', { instance_id: ID, ...where, reason, decided_at_ms }));
  const told = allocate(scheduler, place, 5);
  const newer = allocate(scheduler, elsewhere, 6);
  const stranger = allocate(node, elsewhere, 6);
  const older = allocate(scheduler, elsewhere, 4);
  const forged = { ...newer, shared: newer.shared.replace('fd00:2', 'fd00:3') };
  const judged = async (data: object, ...others: { cause: string; shared: string }[]) => {
    await using core = await listing([told, ...others]);
    const asked = { id: ID, ...told, data, schedulers: [scheduler.address], coreUrl: core.url };
    const { kind, why, message } = await judgeEvent(asked, 0);
    assert.equal(message?.item_hash, told.cause);
    return { kind, why };
  };
  assert.equal((await judged(place)).kind, 'proven');
  const overtaken = await judged(elsewhere, newer);
  assert.deepEqual([overtaken.kind, overtaken.why.includes(newer.cause)], ['said', true]);
  assert.match((await judged(elsewhere, stranger)).why, /no scheduler that you believe/);
  for (const others of [[], [older], [forged]])
    assert.equal((await judged(elsewhere, ...others)).kind, 'wrong', JSON.stringify(others));
});

test("others' allocations of a machine hide none of a scheduler that is believed, and contradict nobody", async () => {
  const { guest: address } = instanceAddress('fd00:1::/64', ID);
  const place = { node_id: nodeId, node_address: node.address };
  const allocate = (signer: Signer, where: object, decided_at_ms: number) =>
    signed(signer, post('net-allocation', { instance_id: ID, ...place, ...where, reason, decided_at_ms }));
  const own = allocate(scheduler, { ipv6: address }, 5);
  const moved = allocate(scheduler, { ipv6: 'fd00:2::1' }, 6);
  const strange = allocate(node, { ipv6: 7 }, 7);
  const strangers = Array.from({ length: 20 }, () => strange);
  const judged = async (...told: { cause: string; shared: string }[]) => {
    await using core = await listing(told);
    const asked = { coreUrl: core.url, id: ID, ipv6: address, schedulers: [scheduler.address] };
    return (await judgeAddress(asked)).kind;
  };
  assert.equal(await judged(...strangers, own), 'proven');
  assert.equal(await judged(...strangers), 'said');
  const forged = { ...moved, shared: moved.shared.replace('fd00:2', 'fd00:3') };
  assert.equal(await judged(forged), 'wrong');
  assert.equal(await judged(forged, own), 'proven', 'each row counts alone');
  assert.equal(await judged(moved, own), 'wrong');

  const data = { ...place, ipv6: 'fd00:2::1' };
  const asked = { id: ID, ...own, data, schedulers: [scheduler.address] };
  await using core = await listing([...strangers, moved, own]);
  const { why } = await judgeEvent({ ...asked, coreUrl: core.url }, 0);
  assert.ok(why.includes(moved.cause), why);
});

test('what could not be asked is no answer: it is thrown, for the page to try again', async () => {
  const ipv6 = instanceAddress('fd00:1::/64', ID).guest;
  const asked = { id: ID, ipv6, schedulers: [scheduler.address] };
  for (const code of ['INTERNAL', 'LIST_TOO_COSTLY', 'OVERLOADED'] as const) {
    await using core = await listingNode([], code);
    await assert.rejects(judgeAddress({ ...asked, coreUrl: core.url }), { code });
  }
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
    data: { node_id: nodeId, node_address: node.address, ipv6 },
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
