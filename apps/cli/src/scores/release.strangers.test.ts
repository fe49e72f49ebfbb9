import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import { envelopeText, VERSIONS_KEY } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { type Lie, lying } from '../testing/lying.ts';
import { createTestDir } from '../testing/run.ts';

const FIRST = { '1.0.0': { released_on: '2026-01-01', replaced_on: null } };
/** What a liar would have its owner sign. */
const FALSE = { '9.9.9': { released_on: '2026-01-01', replaced_on: null } };

test('a release is added to the releases that were signed, whatever table a core node tells of', async () => {
  const key = generatePrivateKey();
  const [owner, stranger, delegate] = [key, generatePrivateKey(), generatePrivateKey()].map(createSigner);
  await using home = await createTestDir();
  await using core = await startCore(home.path);
  const publish = (signer = owner!, releases: object = FIRST, more: object = {}) =>
    new CoreClient({ url: core.url, signer }).postMessage({
      type: 'AGGREGATE',
      content: { key: VERSIONS_KEY, content: { 'skerry-core': releases }, ...more },
    });
  const { item_hash: hash } = await publish();
  await publish(stranger!, FALSE);
  const list = `${core.url}/api/v0/messages.json?msgTypes=AGGREGATE&bodies=shared&addresses=${stranger!.address}`;
  const [strangers] = (await (await fetch(list)).json()).messages;
  const environment = { SKERRY_HOME: home.path, HOME: home.path };
  const imported = await skerryHere(environment, ['key', 'import', '-'], key);
  assert.equal(imported.code, 0, imported.err);
  const release = (url: string, version: string, date: string) =>
    skerryHere({ ...environment, SKERRY_CORE_URL: url }, [
      ...['score', 'release', 'skerry-core', version, '--on', date, '--json'],
    ]);

  const tellTable = (path: string, answer: { data: Record<string, unknown> }) =>
    path.startsWith('/api/v0/aggregates/') && path.includes(VERSIONS_KEY)
      ? { ...answer, data: { [VERSIONS_KEY]: { 'skerry-core': FALSE } } }
      : answer;
  const tellMessages =
    (messages: (told: object[]) => object[]): Lie =>
    (path, answer) =>
      path.startsWith('/api/v0/messages.json')
        ? { ...answer, messages: messages(answer.messages) }
        : tellTable(path, answer);
  // No node would take it: its sender has no permission.
  const content = { key: VERSIONS_KEY, content: { 'skerry-core': FALSE }, address: owner!.address };
  const { body, itemHash: item_hash } = signMessage({ type: 'AGGREGATE', content }, stranger!);
  const { message, signature } = JSON.parse(body);
  const shared = envelopeText(JSON.stringify(message), signature, stranger!.address);
  const forged = { ...strangers, item_hash, shared };
  const own = 'is not what .* signed';
  for (const [what, [lie, why]] of Object.entries({
    'another table': [tellTable, own],
    'and no messages': [tellMessages(() => []), own],
    "and a stranger's message": [tellMessages((told) => [strangers, ...told]), 'it is none'],
    "and a stranger's message for its owner": [tellMessages((told) => [forged, ...told]), 'permi'],
    "and a stranger's message under its hash": [
      tellMessages(() => [{ ...strangers, item_hash: hash }]),
      'another message',
    ],
  } satisfies Record<string, [Lie, string]>)) {
    await using liar = await lying(core.url, lie);
    const { code, out, err } = await release(liar.url, '1.1.0', '2026-02-01');
    assert.deepEqual(liar.sent, [], what);
    const { code: name, error } = JSON.parse(err);
    assert.deepEqual([code, out, name], [5, '', 'UNEXPECTED_ANSWER'], what);
    assert.match(error, new RegExp(why), what);
  }

  // Whom the owner permits it may have added some.
  const security = { authorizations: [{ address: delegate!.address, types: ['AGGREGATE'] }] };
  await new CoreClient({ url: core.url, signer: owner! }).postMessage({
    ...{ type: 'AGGREGATE', content: { key: 'security', content: security } },
  });
  const both = { ...FIRST, '0.9.0': { released_on: '2025-12-01', replaced_on: '2026-01-01' } };
  await publish(delegate!, both, { address: owner!.address });
  const { code, out, err } = await release(core.url, '1.1.0', '2026-02-01');
  assert.equal(code, 0, err);
  assert.deepEqual(JSON.parse(out).versions['skerry-core'], {
    ...both,
    ...{ '1.0.0': { released_on: '2026-01-01', replaced_on: '2026-02-01' } },
    ...{ '1.1.0': { released_on: '2026-02-01', replaced_on: null } },
  });
});
