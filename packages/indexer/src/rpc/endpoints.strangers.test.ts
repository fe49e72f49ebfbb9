import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { startIndexer } from '../indexer.ts';
import { Anvil } from '../testing/anvil.ts';
import { type Call, FaultProxy } from '../testing/fault-proxy.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from '../testing/setup.ts';
import { readAnswers } from './answers.ts';
import { RpcError } from './failures.ts';
import { type Endpoint, RpcPool } from './pool.ts';

const log = createLogger('test', 'silent');

async function growTransfers(anvil: Anvil, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) {
    await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(block));
    await anvil.mine();
  }
}

describe('an endpoint that says of everything that it is too much', () => {
  test('holds up neither the past nor the head while another one answers, however fast it is', async () => {
    await using anvil = await Anvil.start();
    await using database = await createIndexerDatabase();
    const { pool } = database;
    await anvil.setCode(TOKEN);
    await growTransfers(anvil, 30);
    await using refuses = await FaultProxy.start(anvil.url);
    await using honest = await FaultProxy.start(anvil.url);
    honest.delayMs = 20;
    const asksLogs = (calls: readonly Call[]) => calls.some(({ method }) => /Logs|Receipts/.test(method));
    refuses.choose = (calls) => (asksLogs(calls) ? 'too_large' : undefined);
    // However busy the machine is, the one that refuses is asked.
    honest.choose = (calls) => (asksLogs(calls) && !refuses.played.too_large ? 'unavailable' : undefined);
    const settings = indexerSettings([refuses.url, honest.url]);
    await using _indexer = await startIndexer({ pool, settings, log });
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 30);
    await growTransfers(anvil, 3);
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 33);
  });
});

describe('one endpoint of three that makes logs up', () => {
  for (const where of ['the head', 'the past'])
    for (const isFast of [true, false])
      test(`adds none to ${where}, asked ${isFast ? 'first' : 'to compare with'}`, async () => {
        await using anvil = await Anvil.start();
        await using database = await createIndexerDatabase();
        const { pool } = database;
        await anvil.setCode(TOKEN);
        const isHead = where === 'the head';
        if (!isHead) await growTransfers(anvil, 40);
        await using liar = await FaultProxy.start(anvil.url);
        await using one = await FaultProxy.start(anvil.url);
        await using two = await FaultProxy.start(anvil.url);
        // Who answers sooner is asked first.
        for (const proxy of isFast ? [one, two] : [liar]) proxy.delayMs = 20;
        liar.choose = (calls) =>
          calls.some(({ method }) => /Logs/.test(method)) ? 'made_up_log' : undefined;
        const settings = indexerSettings([liar.url, one.url, two.url]);
        await using indexer = await startIndexer({ pool, settings, log });
        await untilIndexed(pool, anvil);
        if (isHead)
          for (let block = 0; block < 5; block++) {
            await growTransfers(anvil, 1);
            await untilIndexed(pool, anvil);
          }
        assert.equal(await compareWithChain(pool, anvil), isHead ? 5 : 40);
        const [, ...others] = indexer.report('anvil').map(({ failures }) => failures.lie ?? 0);
        assert.deepEqual(others, [0, 0]);
      });
});

describe('an answer that is more than anything that was asked for', () => {
  const MANY = 2_100_000;

  test('is not parsed: millions of small values would take the thread for a minute', () => {
    for (const [open, unit, close] of [
      ['[', '{},', '0]'],
      ['[', '[', `${']'.repeat(MANY)}]`],
      ['{"a":0', ',"b":0', '}'],
    ]) {
      const body = Buffer.from(`{"id":0,"result":${open}${unit!.repeat(MANY)}${close}}`);
      assert.throws(
        () => readAnswers(body, 1),
        (error: unknown) => {
          assert.ok(error instanceof RpcError);
          assert.deepEqual(error.failure, { kind: 'range_too_large', isSent: true });
          return true;
        },
      );
    }
    const long = { id: 0, result: `0x${'00'.repeat(MANY)}` };
    assert.deepEqual(readAnswers(Buffer.from(JSON.stringify(long)), 1), [long.result]);
  });

  test('has its endpoint left alone where no range was asked for that could be smaller', () => {
    const urls = ['http://127.0.0.1:9/a', 'http://127.0.0.1:9/b'];
    const { signal } = new AbortController();
    const pool = new RpcPool({ urls, timeoutMs: 1_000, restAfterLieMs: 3_600_000, log, signal });
    const [sent, range] = pool.endpoints as [Endpoint, Endpoint];
    sent.note({ kind: 'range_too_large', isSent: true }, 0);
    range.note({ kind: 'range_too_large', isSent: true }, 500);
    assert.deepEqual(
      [sent, range].map((one) => pool.isResting(one)),
      [true, false],
    );
  });
});
