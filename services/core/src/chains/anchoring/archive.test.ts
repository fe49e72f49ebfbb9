import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { archiveOf, parseArchive, parseSyncContent, syncContentOf } from './archive.ts';
import { decideChanges, type KeptEvent } from './decide.ts';
import { emitInput } from './emitter.ts';

const CID = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const refused = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

test('an event says a CID or brings its messages; an archive never names another', () => {
  assert.deepEqual(parseSyncContent(syncContentOf(CID)), { cid: CID, messages: undefined });
  const inline = '{"protocol":"aleph","version":1,"content":{"messages":[{"sender":"0x"}]}}';
  assert.equal(parseSyncContent(inline).messages?.length, 1);
  assert.equal(parseArchive(Buffer.from(inline)).length, 1);
  assert.throws(() => parseArchive(Buffer.from(syncContentOf(CID))), refused('ARCHIVE_NESTED'));
  const deep = `{"protocol":"aleph","version":1,"content":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const many = `{"protocol":"aleph","version":1,"content":{"messages":[${Array(20_001).fill('{}').join()}]}}`;
  for (const text of [
    '',
    'null',
    '[]',
    '{}',
    deep,
    many,
    '{"protocol":"aleph","version":2}',
    inline.slice(0, -1),
  ])
    assert.throws(() => parseArchive(Buffer.from(text)), refused('ARCHIVE_INVALID'), text.slice(0, 40));
  assert.throws(() => parseArchive(Buffer.from([0xff, 0xfe])), refused('ARCHIVE_INVALID'));
});

test('whatever strangers write is read, or refused with a code', () => {
  const json = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({
        protocol: fc.constantFrom('aleph', 'aleph-offchain', 'x'),
        version: fc.constantFrom(1, 2, '1'),
        content: fc.oneof(fc.constant(CID), fc.anything(), fc.record({ messages: fc.array(fc.anything()) })),
      })
      .map((value) => JSON.stringify(value, (_key, one) => (typeof one === 'bigint' ? 1 : one)) ?? ''),
  );
  fc.assert(
    fc.property(json, (text) => {
      for (const read of [() => parseSyncContent(text), () => parseArchive(Buffer.from(text))])
        try {
          read();
        } catch (error) {
          assert.ok(error instanceof AppError && /^ARCHIVE_/.test(error.code), String(error));
        }
    }),
    { numRuns: 500 },
  );
});

test('what was signed comes out of an archive byte for byte', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (text, address) => {
      const signedText = JSON.stringify({ text, n: 1 }, null, 1);
      const archived = JSON.stringify({ signed_text: signedText, signature: '0x', address });
      const [message] = parseArchive(archiveOf([archived]));
      assert.ok(message?.kind === 'message');
      assert.ok(message.body.toString().startsWith(`{"message":${signedText},`));
    }),
  );
});

test('kept events become those of the chain, whatever both were', () => {
  const event = fc.record({
    blockNumber: fc.integer({ min: 0, max: 9 }),
    logIndex: fc.integer({ min: 0, max: 2 }),
    transactionHash: fc.constantFrom('a', 'b'),
    blockTime: fc.constantFrom(1, 2),
  });
  const place = (one: { blockNumber: number; logIndex: number }) => `${one.blockNumber} ${one.logIndex}`;
  const events = fc.uniqueArray(event, { selector: place });
  fc.assert(
    fc.property(events, events, (kept, chain) => {
      const seen = chain.map((one) => ({ ...one, timestamp: one.blockTime, name: 'SyncEvent', args: {} }));
      const { gone, fresh, retimed } = decideChanges(kept, seen, 9, false);
      const timeOf = new Map(retimed.map((one) => [place(one), one.blockTime]));
      const after = [
        ...kept.filter((one) => !gone.includes(one)),
        ...fresh.map((one) => ({ ...one, blockTime: one.timestamp })),
      ].map((one) => ({ ...one, blockTime: timeOf.get(place(one)) ?? one.blockTime }));
      const key = (one: KeptEvent) => `${place(one)} ${one.transactionHash} ${one.blockTime}`;
      assert.deepEqual(after.map(key).sort(), chain.map(key).sort());
    }),
  );
});

test('the input of doEmit is as the ABI asks for', () => {
  assert.equal(
    emitInput('abc'),
    `0x58666c04${'20'.padStart(64, '0')}${'3'.padStart(64, '0')}${'616263'.padEnd(64, '0')}`,
  );
});
