import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { webhookCommand, webhookOf } from './webhook-form.ts';

const TYPED = {
  url: ' https://example.org/hook ',
  'message.new': 'on',
  'program.executed': 'on',
  types: 'POST, STORE',
  channels: "it's",
  senders: '',
  tags: '  ',
};

describe('a webhook, as it is typed', () => {
  test('is what the core node takes, without filters that were left empty', () => {
    assert.deepEqual(webhookOf(TYPED), {
      url: 'https://example.org/hook',
      events: ['message.new', 'program.executed'],
      filters: { types: ['POST', 'STORE'], channels: ["it's"] },
    });
    assert.deepEqual(webhookOf({ url: 'x', 'message.new': 'on' }), { url: 'x', events: ['message.new'] });
  });

  test('is a command whose words no shell changes', () => {
    assert.equal(
      webhookCommand(TYPED),
      `skerry webhook add https://example.org/hook --event message.new --event program.executed --type POST --type STORE --channel 'it'\\''s'`,
    );
  });
});
