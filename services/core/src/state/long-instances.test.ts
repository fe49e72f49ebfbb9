import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  buildStoredMessage,
  publishMessage,
  recomputeInstancesDigest,
  signMessage,
  verdictOnState,
} from '@skerry/client';
import { DERIVED_KINDS, type DerivedKind, envelopeText, LIMITS } from '@skerry/protocol';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';

const { alice } = signers;
const NOBODY: ReadonlySet<string> = new Set();
const UPDATES = 40;

let core: TestCore;
let coreUrl: string;
before(async () => {
  core = await createTestCore();
  coreUrl = await core.listen();
});
after(() => core[Symbol.asyncDispose]());

/** Anybody may sign a text with so many spaces. */
async function sendPadded(content: object): Promise<void> {
  const { message } = JSON.parse(signMessage({ type: 'INSTANCE', content }, alice).body);
  const text = `${JSON.stringify(message).slice(0, -1)}${' '.repeat(LIMITS.listedBodyBytes)}}`;
  const { status } = await core.post('/messages', envelopeText(text, alice.sign(text), alice.address));
  assert.equal(status, 200);
}

/** Its content is a file. */
async function sendFiled(): Promise<void> {
  const draft = {
    type: 'INSTANCE',
    content: {
      ...{ allow_amend: false, volumes: [], metadata: { name: 'filed' } },
      resources: { vcpus: 1, memory: 512, seconds: 30 },
      payment: { type: 'credit', chain: 'ETH' },
      environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
      rootfs: { parent: { ref: 'debian:12', use_latest: true }, persistence: 'host', size_mib: 4_096 },
    },
    sync: true,
  };
  const { content, body } = buildStoredMessage(draft, alice);
  const headers = { 'content-type': 'application/octet-stream' };
  const stored = await fetch(`${coreUrl}/api/v0/storage/add_file`, {
    method: 'POST',
    headers,
    body: content,
  });
  assert.ok(stored.ok, await stored.text());
  await publishMessage(coreUrl, body);
}

/** It was changed again and again. */
async function sendChanged(): Promise<void> {
  const timestamp = Math.floor(Date.now() / 1_000) - UPDATES;
  const { body } = await core.send(alice, { type: 'INSTANCE', content: instanceContent, timestamp });
  const { item_hash: instance_id } = body;
  for (let at = 0; at < UPDATES; at++) {
    const update = { type: 'INSTANCE_UPDATE', content: { instance_id, name: `n${at}` } };
    await core.send(alice, { ...update, timestamp: timestamp + at });
  }
}

test('an instance is proven however long its history or its messages are, and where its content is a file', async () => {
  await sendPadded({ ...instanceContent, name: 'padded' });
  await sendFiled();
  await sendChanged();
  const compared = await recomputeInstancesDigest({ coreUrl }, NOBODY, { max: 100 });
  assert.deepEqual(
    { count: compared.said.count, refused: compared.refused, unproven: compared.unproven },
    { count: 3, refused: [], unproven: {} },
  );
  assert.equal(compared.isSame, true);
  assert.equal(compared.verified, 4, 'of forty updates the last one decides');
});

test('a node of which more is told than is read is neither right nor wrong', async () => {
  const cut = await recomputeInstancesDigest({ coreUrl }, NOBODY, { max: 1 });
  const whole = await recomputeInstancesDigest({ coreUrl }, NOBODY, { max: 100 });
  const kinds = Object.fromEntries(DERIVED_KINDS.map((kind) => [kind, whole]));
  const derived = {
    ...{ kinds: kinds as Record<DerivedKind, typeof whole>, verified: 0, refused: [], onBehalf: 0 },
  };
  const verdictOf = (instances: typeof whole) => verdictOnState({ messages: whole, instances, derived });
  assert.equal(verdictOf(whole), 'same');
  assert.equal(verdictOf(cut), 'cut');
  assert.equal(verdictOf({ ...whole, isSame: false }), 'different');
  const refused = [{ itemHash: 'a', code: 'HASH_MISMATCH', message: 'other' } as const];
  assert.equal(verdictOf({ ...cut, refused }), 'different');
});
