import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { AppError, type VerifiedMessage } from '@skerry/protocol';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';
import { acceptMessage } from './accept.ts';

/** What holds for each source. Since when a message is there is tested in peers/sync/dates.strangers.test.ts. */

type Bring = (core: TestCore, frame: Buffer) => Promise<string>;

const submitted =
  (source: 'client' | 'own' | 'archive'): Bring =>
  async ({ rooms: { intake } }, body) => {
    try {
      return (await intake[source].submit(body)).verdict.status;
    } catch (error) {
      if (error instanceof AppError) return error.code;
      throw error;
    }
  };

const passedOn =
  (source: 'gossip' | 'offer' | 'peer'): Bring =>
  async ({ rooms: { intake } }, frame) => {
    const read = await intake[source].read([frame]);
    await intake[source].keep(read);
    return 'fault' in read[0]! ? read[0].fault : 'processed';
  };

const SOURCES: Readonly<Record<string, Bring>> = {
  client: submitted('client'),
  own: submitted('own'),
  archive: submitted('archive'),
  gossip: passedOn('gossip'),
  offer: passedOn('offer'),
  peer: passedOn('peer'),
};

const webhook: MessageDraft = {
  type: 'WEBHOOK',
  content: {
    url: 'https://hooks.example.org/',
    events: ['message.new'],
    secret: 'a secret of enough characters',
  },
};
const machine: MessageDraft = { type: 'INSTANCE', content: { ...instanceContent, image: 'fedora' } };
const note = (channel: string): MessageDraft => ({ type: 'POST', channel, content: { type: 'note' } });

async function ask(draft: MessageDraft): Promise<Record<string, string>> {
  await using core = await createTestCore();
  const results: Record<string, string> = {};
  for (const [name, bring] of Object.entries(SOURCES)) {
    const { body, itemHash } = signMessage({ ...draft, nonce: name }, signers.alice);
    const result = await bring(core, Buffer.from(body));
    const { status } = await core.get(`/messages/${itemHash}`);
    results[name] = `${result}, ${status === 200 ? 'kept' : 'not kept'}`;
  }
  return results;
}

describe('the intake', () => {
  test('private messages are carried out for clients who send them where they belong, kept by nobody, and no business between nodes', async () => {
    assert.deepEqual(await ask(webhook), {
      client: 'UNKNOWN_MESSAGE_TYPE, not kept',
      own: 'UNKNOWN_MESSAGE_TYPE, not kept',
      archive: 'UNKNOWN_MESSAGE_TYPE, not kept',
      gossip: 'refused, not kept',
      offer: 'refused, not kept',
      peer: 'refused, not kept',
    });
    const withoutContent: VerifiedMessage = {
      form: 'network',
      itemHash: '0'.repeat(64),
      chain: 'ETH',
      sender: signers.alice.address,
      type: 'WEBHOOK',
      channel: null,
      time: 1,
      content: null,
      signature: '0x',
      sourceText: null,
    };
    assert.throws(() => acceptMessage(withoutContent), { code: 'UNKNOWN_MESSAGE_TYPE' });
  });

  test('what would be in vain is refused where somebody asks for it', async () => {
    const { client, ...others } = await ask(machine);
    assert.equal(client, 'UNKNOWN_IMAGE, not kept');
    assert.deepEqual(new Set(Object.values(others)), new Set(['processed, kept']));
  });

  test('a channel is printable where messages are sent, and any text where nodes pass them on', async () => {
    const { gossip, offer, peer, ...senders } = await ask(note('a\nb'));
    assert.deepEqual(new Set([gossip, offer, peer]), new Set(['processed, kept']));
    assert.deepEqual(new Set(Object.values(senders)), new Set(['INVALID_ENVELOPE, not kept']));
  });

  test('new messages are passed on by the node that had them first', async () => {
    await using core = await createTestCore();
    const passed: (string | null)[] = [];
    core.rooms.onCommitted(({ toPassOn }) => passed.push(...toPassOn.map(({ message }) => message.channel)));
    for (const [name, bring] of Object.entries(SOURCES)) {
      const { body } = signMessage(note(name), signers.alice);
      await bring(core, Buffer.from(body));
      await bring(core, Buffer.from(body));
    }
    assert.deepEqual(passed, ['client', 'own', 'archive', 'offer']);
  });
});
