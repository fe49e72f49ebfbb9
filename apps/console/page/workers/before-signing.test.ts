import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { act } from './actions.ts';
import { quote } from './explain.ts';
import { askWebhooks } from './webhooks.ts';

const NOWHERE = 'http://127.0.0.1:9';

test('what no core node takes is refused before its owner is asked to sign it', async () => {
  const own = createSigner(generatePrivateKey());
  let asked = 0;
  const signer = {
    ...{ chain: own.chain, address: own.address },
    sign(text: string) {
      asked++;
      return Promise.resolve(own.sign(text));
    },
  };
  const machine = { name: 'web', cpu: 1, memory: 512, disk: 4, image: 'debian:12' };
  const ssh_key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';
  const program = { name: 'p', code: 'x', runtime: 'python3', memory: 128, timeout: 30 };
  const wrong = [
    { kind: 'createInstance', content: { ...machine, ssh_key, memory: 1 } },
    { kind: 'createInstance', content: { ...machine, ssh_key: 'none' } },
    { kind: 'createProgram', content: { ...program, timeout: 0 } },
    { kind: 'update', instanceId: 'a'.repeat(64), changes: { name: '' }, after: 0 },
  ] as const;
  for (const action of wrong)
    await assert.rejects(act(NOWHERE, action, signer), { code: /INVALID_CONTENT|INVALID_SSH_KEY/ });
  const webhook = { name: 'register', asked: { url: 'ftp://example.org', events: ['message.new'] } } as const;
  await assert.rejects(askWebhooks(NOWHERE, webhook, signer), { code: 'INVALID_CONTENT' });
  assert.equal(asked, 0);
  const right = { kind: 'createInstance', content: { ...machine, ssh_key } } as const;
  await assert.rejects(act(NOWHERE, right, signer), { code: 'UPSTREAM_UNAVAILABLE' });
  assert.equal(asked, 1);
});

test('what costs something is never shown without a word about its price', async () => {
  for (const type of ['INSTANCE', 'PROGRAM'])
    assert.equal(await quote(NOWHERE, { type, content: { memory: 1 } }), 'untold');
  assert.equal(await quote(NOWHERE, { type: 'file', bytes: 1 }), 'untold');
  assert.equal(await quote(NOWHERE, { type: 'POST', content: {} }), null);
});
