import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { verifyEnvelope } from '../envelope.ts';
import { sha256Hex } from '../hash.ts';
import { ADDRESS, inlineMessage, NOW, sign } from '../network-form/testing/setup.ts';
import { verifySubmission } from '../submission.ts';
import { sharedText, verifyShared } from './shared.ts';

const HEADING = '### Shared messages\n';
const section = readFileSync(new URL('../../../../docs/api.md', import.meta.url), 'utf8').split(HEADING)[1]!;
/** The form that the page tells, of the line that begins so. */
const formOf = (start: string): string =>
  /`(\{.*\})`/.exec(section.split('\n').find((line) => line.startsWith(start)) ?? '')![1]!;
const namesIn = (list: string): string[] =>
  list
    .split(', ')
    .map((name) => name.replace(/[?"]/g, ''))
    .sort();

function sharedOf(message: Parameters<typeof sharedText>[0]): Record<string, unknown> {
  const text = sharedText(message)!;
  assert.equal(verifyShared(text, NOW).itemHash, message.itemHash);
  return JSON.parse(text);
}

test('the page about the API has the members of each form in which nodes pass on a message', () => {
  const signedText = JSON.stringify({
    ...{ chain: 'ETH', channel: 'c', type: 'POST', timestamp: NOW },
    content: { type: 'note' },
  });
  const body = `{"message":${signedText},"signature":"${sign(signedText)}","address":"${ADDRESS}"}`;
  const envelope = sharedOf({ ...verifyEnvelope(body, NOW), notedMs: NOW * 1000 });
  const [, envelopeRest = ''] = /SIGNED_TEXT, (.*)\}$/.exec(formOf('| envelope'))!;
  assert.deepEqual(['message', ...namesIn(envelopeRest)].sort(), Object.keys(envelope).sort());

  const content = JSON.stringify({ type: 'note', address: ADDRESS, time: NOW });
  const network = sharedOf(verifySubmission(JSON.stringify({ message: inlineMessage(content) }), NOW));
  const [, networkNames = '', networkRest = ''] = /\{"message": \{(.*)\}, (.*)\}$/.exec(
    formOf('| [network form]'),
  )!;
  assert.deepEqual(namesIn(networkNames), Object.keys(network.message as object).sort());
  assert.deepEqual(['message', ...namesIn(networkRest)], Object.keys(network));

  const fileHash = sha256Hex('a file\n');
  const upload = {
    ...{ address: ADDRESS, file_hash: fileHash, size: 7, content_type: 'text/plain' },
    ...{ signature: sign(fileHash), channel: 'c', tags: ['t'], time: NOW },
  };
  const uploaded = sharedOf(verifyShared(JSON.stringify({ upload, noted_ms: 0 }), NOW));
  const [, uploadNames = '', uploadRest = ''] = /\{"upload": \{(.*)\}, (.*)\}$/.exec(formOf('| [upload]'))!;
  assert.deepEqual(namesIn(uploadNames), Object.keys(uploaded.upload as object).sort());
  assert.deepEqual(['upload', ...namesIn(uploadRest)], Object.keys(uploaded));
});
