import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createWrite } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { NO_NETWORKS } from '@skerry/indexer';
import { createLogger } from '@skerry/kit';
import { STRANGER } from '../../sim/testing/chain.ts';
import type { Schema } from '../../store/schema.ts';
import { MIGRATIONS } from '../../testing/core.ts';
import { followOnce } from './follower.ts';
import { ARCHIVE_LIMITS } from './limits.ts';
import type { ChainReader } from './reader.ts';
import { parseAnchorSettings } from './settings.ts';

const log = createLogger('test', 'silent');
const [START, EVENTS] = [10, 2 * ARCHIVE_LIMITS.events + 100];
const HEAD = START + EVENTS - 1;
const CONTRACT = `0x${'c0'.repeat(20)}`;
const INDEXED = { genesisHash: 'genesis', reading: randomUUID() };

/** A chain with an event of a stranger in every block. @param floor blocks up to this one are settled */
const readerOf = (floor: number): ChainReader => ({
  findChain: async () => INDEXED,
  async readEvents(fromBlock, limit) {
    const readTo = Math.min(HEAD, fromBlock + limit);
    const events = Array.from({ length: readTo - fromBlock + 1 }, (_, at) => ({
      ...{ blockNumber: fromBlock + at, logIndex: 0, transactionHash: `0x${fromBlock + at}` },
      ...{ timestamp: 1_700_000_000, name: 'SyncEvent', args: { addr: STRANGER, message: '' } },
    }));
    const read = {
      readTo,
      coveredTo: HEAD,
      isAtTip: true,
      settledTo: Math.min(floor, readTo),
      isCut: readTo < HEAD,
    };
    return { ...read, ...INDEXED, events, head: HEAD, requests: 1 };
  },
});

function settingsOf() {
  const network = { name: 'full', chain_id: 1, endpoints: ['http://127.0.0.1:1'] };
  const anchor = { contract: CONTRACT, start_block: START, emitters: [CONTRACT], chain: 'ETH', network };
  return parseAnchorSettings({ anchors: [anchor] }, NO_NETWORKS).anchors[0]!;
}

test('a stranger who fills a whole look with events has the contract followed no faster than it is polled', async () => {
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db, pool } = database;
  const common = { db, write: createWrite<Schema>(pool), settings: settingsOf(), now: Date.now, log };
  const look = async (floor: number) => {
    const { fresh, isCut } = await followOnce({ ...common, chain: readerOf(floor) });
    return [fresh, isCut];
  };
  const full = ARCHIVE_LIMITS.events + 1;
  assert.deepEqual(await look(START - 1), [full, false], 'nothing is settled');
  assert.deepEqual(await look(START - 1), [0, false], 'nor yet');
  assert.deepEqual(await look(START), [0, true], 'the next look begins further on');
  assert.deepEqual(await look(START), [1, false]);
  // Once all of it is settled it is read without a rest.
  assert.deepEqual(await look(HEAD), [0, true]);
  assert.deepEqual(await look(HEAD), [full, true]);
  assert.deepEqual(await look(HEAD), [EVENTS - 2 * full - 1, false]);
});

test('a look that finds nothing new writes and locks nothing', async () => {
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db, pool } = database;
  const settings = settingsOf();
  const write = createWrite<Schema>(pool);
  let writes = 0;
  const counted: typeof write = (...args) => {
    writes++;
    return write(...args);
  };
  const common = { db, write: counted, settings, now: Date.now, log };
  const reader = readerOf(HEAD);
  // The last events alone, of which another one takes a place after a reorganisation.
  const last = (change: object = {}): ChainReader => ({
    ...reader,
    readEvents: async (_, limit) => {
      const { events, ...read } = (await reader.readEvents(HEAD - 1, limit))!;
      return { ...read, settledTo: HEAD - 2, events: events.map((one) => ({ ...one, ...change })) };
    },
  });
  const look = async (chain: ChainReader) => {
    const before = writes;
    const { gone, fresh, look: seen } = await followOnce({ ...common, chain });
    return [gone, fresh, writes - before, seen?.readTo];
  };
  assert.deepEqual(await look(last()), [0, 2, 1, HEAD]);
  assert.deepEqual(await look(last()), [0, 0, 0, HEAD]);
  assert.deepEqual(await look(last({ transactionHash: '0xother' })), [2, 2, 1, HEAD]);
  assert.deepEqual(await look(last({ transactionHash: '0xother' })), [0, 0, 0, HEAD]);
  // Of a block that has another time, and with it all that was dated by it.
  const later = last({ transactionHash: '0xother', timestamp: 1_700_000_012 });
  assert.deepEqual(await look(later), [0, 0, 1, HEAD]);
  assert.deepEqual(await look(later), [0, 0, 0, HEAD]);
  // The index was read anew.
  const anew = { ...INDEXED, reading: randomUUID() };
  const again: ChainReader = {
    findChain: async () => anew,
    readEvents: async (...args) => ({ ...(await later.readEvents(...args))!, ...anew }),
  };
  assert.deepEqual(await look(again), [0, 0, 1, HEAD]);
  assert.deepEqual(await look(again), [0, 0, 0, HEAD]);
});
