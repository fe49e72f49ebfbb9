import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import {
  CREDIT_CHANNEL,
  CREDIT_POST,
  NETWORK_CHANNEL,
  NETWORK_POST,
  PRICING_KEY,
  verifySubmission,
} from '@skerry/protocol';
import { sql } from 'kysely';
import { acceptMessage } from '../../intake/accept.ts';
import { getAccount } from '../../state/credits/accounts.ts';
import { digestState } from '../../state/digest.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';
import {
  createTestCore,
  instanceContent,
  MIGRATIONS,
  OPERATOR_TOKEN,
  signers,
  type TestCore,
} from '../../testing/core.ts';
import { isAnyWaiting } from '../../testing/waiting.ts';
import { readPeerTrust } from './ask.ts';
import { decideTrust, type Held, type Told, UNSET } from './decide.ts';
import { FIRST_ANSWERS_MS, Trust } from './trust.ts';

const log = createLogger('core', 'fatal');
const { alice, scheduler, bob, node, credit } = signers;
const NODE_ID = 'a'.repeat(64);
const NOBODY = {
  schedulers: undefined,
  scoringPublishers: undefined,
  creditPublishers: undefined,
  knownCoreNodes: undefined,
  creditEnforcement: undefined,
};

async function place(core: TestCore, instanceId: string, by = scheduler): Promise<string> {
  const allocation = {
    ...{ instance_id: instanceId, node_id: NODE_ID, node_address: node.address, reason: null },
    ...{ ipv6: '2001:db8::3:0:0:1', decided_at_ms: Date.now() },
  };
  const { status, body } = await core.send(by, {
    type: 'POST',
    channel: NETWORK_CHANNEL.scheduling,
    content: { type: NETWORK_POST.allocation, content: allocation },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return body.item_hash;
}

async function createMachine(core: TestCore, at: number): Promise<string> {
  const { body } = await core.send(alice, {
    type: 'INSTANCE',
    content: instanceContent,
    timestamp: Math.floor(Date.now() / 1000) - at,
  });
  return body.item_hash;
}

describe('a list that is set later', () => {
  test('S3: a scheduler that is trusted later is believed for what it said before, and none is when it is taken out', async () => {
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const open = (schedulers: readonly string[]) =>
      createTestCore({
        database,
        trust: {
          schedulers: [...schedulers],
          scoringPublishers: [],
          creditPublishers: [credit.address],
          knownCoreNodes: [],
          creditEnforcement: false,
        },
      });
    const ids: string[] = [];
    const before = await (async () => {
      await using first = await open([]);
      for (let at = 0; at < 3; at++) ids.push(await createMachine(first, at));
      for (const id of ids) await place(first, id);
      const { body } = await first.get(`/instances/${ids[0]}`);
      assert.deepEqual([body.ipv6, body.reason.code], ['', 'AWAITING_NODE']);
      return digestState(first.rooms.db);
    })();
    await (async () => {
      await using second = await open([scheduler.address]);
      for (const id of ids)
        assert.equal((await second.get(`/instances/${id}`)).body.ipv6, '2001:db8::3:0:0:1');
      // Whoever follows the events is told.
      const events = await second.rooms.db.selectFrom('events').selectAll().execute();
      const told = events.filter(({ data }) => (data as { ipv6?: string }).ipv6 === '2001:db8::3:0:0:1');
      assert.equal(told.length, ids.length);
    })();
    await using third = await open([]);
    const { body } = await third.get(`/instances/${ids[0]}`);
    assert.deepEqual([body.ipv6, body.node_id], ['', null]);
    assert.deepEqual((await digestState(third.rooms.db)).derived, before.derived);
  });

  test('S3: what is derived again goes on where it was when the node is killed, and serves meanwhile', async () => {
    await using core = await createTestCore();
    const ids: string[] = [];
    const COUNT = 120;
    for (let at = 0; at < COUNT; at++) {
      const id = await createMachine(core, at);
      ids.push(id);
      await place(core, id, bob);
    }
    const given = {
      schedulers: [bob.address],
      scoring_publishers: [],
      credit_publishers: [],
      known_core_nodes: [],
      credit_enforcement: [],
    };
    const { db, pipeline } = core.rooms;
    const tools = {
      readContentFile: async () => undefined,
      pipeline: {
        resume: () => {},
        derive: (...all: Parameters<typeof pipeline.derive>) => {
          if (rounds++ >= failAfter) throw new Error('killed');
          problems.push(again?.problem());
          return pipeline.derive(...all);
        },
      },
    };
    let again: Trust | undefined;
    const problems: (string | undefined)[] = [];
    let rounds = 0;
    let failAfter = 1;
    const killed = await Trust.open({ db, given, peers: 0, log });
    await assert.rejects(killed.derive(tools), /killed/);
    assert.equal((await core.get('/health')).status, 200);
    rounds = 0;
    problems.length = 0;
    failAfter = Number.POSITIVE_INFINITY;
    again = await Trust.open({ db, given, peers: 0, log });
    await again.derive(tools);
    const rows = await db.selectFrom('trust').select(['name', 'derived', 'place']).execute();
    for (const row of rows.filter(({ name }) => name === 'schedulers'))
      assert.deepEqual([row.derived, row.place], [[bob.address], null]);
    // Of three rounds the first is not done again; measurements and credit, of which there is nothing, take one each.
    assert.equal(rounds, 2 + 1 + 1);
    // Where there is nothing, no answer is wrong meanwhile: the node is well, as it is at its first start.
    const ofSchedulers = (done: number) =>
      `schedulers changed: deriving the affected state again (${done} of ${COUNT} messages)`;
    assert.deepEqual(problems, [ofSchedulers(50), ofSchedulers(100), undefined, undefined]);
  });

  test('other publishers set other prices: what hangs on credit is decided again', async () => {
    await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
    const open = (creditPublishers: readonly string[]) =>
      createTestCore({
        database,
        trust: {
          schedulers: [],
          scoringPublishers: [],
          creditPublishers: [...creditPublishers],
          knownCoreNodes: [],
          creditEnforcement: true,
        },
      });
    const timestamp = Math.floor(Date.now() / 1000);
    const sign = (signer: Signer, type: string, content: unknown, at: number) =>
      signMessage({ type, content, timestamp: timestamp + at } as MessageDraft, signer);
    const free = { instance: { compute_unit: 0, storage_mib: 0 } };
    const pricing = sign(bob, 'AGGREGATE', { key: PRICING_KEY, content: free }, -20);
    const machine = sign(alice, 'INSTANCE', instanceContent, -10);
    const statusIn = async ({ rooms, get }: TestCore) => {
      await rooms.pipeline.idle();
      return (await get(`/messages/${machine.itemHash}/status`)).body.status;
    };
    await (async () => {
      await using first = await open([]);
      for (const { body } of [pricing, machine]) {
        const accepted = acceptMessage(verifySubmission(body, timestamp));
        await first.rooms.intake.peer.keep([{ accepted }]);
      }
      assert.equal(await statusIn(first), 'rejected');
    })();
    await (async () => {
      await using second = await open([bob.address]);
      assert.equal(await statusIn(second), 'processed');
      // As somebody left them who changed them by hand.
      await second.rooms.db.updateTable('credit_prices').set({ compute_unit: '1000000' }).execute();
      const token = { 'x-auth-token': OPERATOR_TOKEN };
      await sql`update messages set status = 'rejected' where item_hash = ${machine.itemHash}`.execute(
        second.rooms.db,
      );
      assert.equal((await second.post('/price/recalculate', '', token)).status, 200);
      assert.equal(await statusIn(second), 'processed');
    })();
    await using third = await open([]);
    assert.equal(await statusIn(third), 'rejected');
  });

  test('what is forgotten while it is derived again stays without effect', async () => {
    await using core = await createTestCore();
    const credits = [{ address: alice.address, amount: 100, ref: 'r' }];
    const sent = await core.send(bob, {
      type: 'POST',
      channel: CREDIT_CHANNEL,
      content: { type: CREDIT_POST.distribution, content: { distribution: { credits } } },
    });
    assert.equal(sent.status, 200);
    const given = {
      schedulers: [],
      scoring_publishers: [],
      credit_publishers: [bob.address],
      known_core_nodes: [],
      credit_enforcement: [],
    };
    const { db, pipeline } = core.rooms;
    let isForgotten = false;
    let rounds = 0;
    const tools = {
      readContentFile: async () => undefined,
      pipeline: {
        resume: () => {},
        derive: async (...all: Parameters<typeof pipeline.derive>) => {
          // The first round of credit: what it found is read already.
          if (++rounds === 3) {
            isForgotten = true;
            const content = { hashes: [sent.body.item_hash] };
            assert.equal((await core.send(bob, { type: 'FORGET', content })).status, 200);
          }
          return pipeline.derive(...all);
        },
      },
    };
    await (await Trust.open({ db, given, peers: 0, log })).derive(tools);
    assert.ok(isForgotten);
    assert.equal((await getAccount(db, alice.address, Date.now() / 1000 + 60)).balance, 0n);
  });
});

describe('a list that peers tell', () => {
  const A = '0x1111111111111111111111111111111111111111';
  const B = '0x2222222222222222222222222222222222222222';
  const told = (url: string, value: readonly string[], source: Told['source'] = 'setting'): Told => ({
    url,
    value,
    source,
  });
  const learned = (value: readonly string[]): Held => ({ value, source: 'peers', toldBy: ['x'] });

  test('S3: a setting wins; peers count while they agree; what was learned changes only when all say so', () => {
    const decide = (facts: Partial<Parameters<typeof decideTrust>[0]>) =>
      decideTrust({ given: undefined, held: undefined, told: [], peers: 2, hasWaited: true, ...facts });
    assert.equal(decide({ given: [], told: [told('x', [A])] }).held.source, 'setting');
    assert.deepEqual(decide({ told: [told('x', [A])] }).held.value, [A]);
    assert.match(decide({}).problem!, /no peer has answered/);
    assert.equal(decide({ peers: 0 }).problem, undefined);
    // Nobody says anything: that is an answer.
    assert.deepEqual(decide({ told: [told('x', [], 'unset'), told('y', [], 'unset')] }), { held: UNSET });
    const torn = decide({ held: learned([A]), told: [told('x', [A]), told('y', [B])] });
    assert.deepEqual(torn.held.value, [A]);
    assert.match(torn.problem!, new RegExp(`x says ${A}; y says ${B}`));
    const alone = decide({ held: learned([A]), told: [told('x', [B])] });
    assert.deepEqual([alone.held.value, typeof alone.problem], [[A], 'string']);
    assert.deepEqual(decide({ held: learned([A]), told: [told('x', [B]), told('y', [B])] }).held.value, [B]);
  });

  test('a peer that says its operator set its list outweighs nobody', () => {
    const facts = { given: undefined, peers: 4, hasWaited: true };
    const honest = ['x', 'y', 'z'].map((url) => told(url, [A], 'peers'));
    const liar = told('liar', [B], 'setting');
    for (const held of [undefined, learned([A])]) {
      const verdict = decideTrust({ ...facts, held, told: [liar, ...honest] });
      assert.deepEqual(verdict.held.value, held ? [A] : []);
      assert.match(verdict.problem!, new RegExp(`liar says ${B}; x says ${A}`));
    }
    // Who has no opinion contradicts nobody.
    const silent = decideTrust({ ...facts, held: undefined, told: [...honest, told('w', [], 'unset')] });
    assert.deepEqual([silent.held.value, silent.problem], [[A], undefined]);
  });

  test('who answers first at the first start decides nothing, until most peers answered or a while passed', async () => {
    await using core = await createTestCore({ trust: NOBODY });
    const { db } = core.rooms;
    let nowMs = 5_000;
    const said: string[] = [];
    const heard = createLogger('core', 'warn', { write: (line) => void said.push(line) });
    const options = { db, given: {}, peers: 3, uptime: () => nowMs, log: heard };
    const trust = await Trust.open(options);
    nowMs += 60_000;
    const says = (url: string, value: readonly string[]) => ({ schedulers: told(url, value) });
    await trust.hear([says('liar', [B])]);
    assert.deepEqual([...trust.setOf('schedulers')], []);
    assert.match(trust.problem()!, /only 1 of 3 peers have answered/);
    const logged = said.map((line) => (JSON.parse(line) as { msg: string }).msg);
    assert.ok(logged.includes(trust.problem()!), logged.join('; '));
    await trust.hear([says('x', [A]), says('y', [A])]);
    assert.deepEqual([...trust.setOf('schedulers')], [A]);
    // One of one is most of them.
    const one = decideTrust({
      ...{ given: undefined, held: undefined, told: [told('x', [A])], peers: 1, hasWaited: false },
    });
    assert.deepEqual(one.held.value, [A]);
    await db.deleteFrom('trust').execute();
    const again = await Trust.open(options);
    nowMs += FIRST_ANSWERS_MS;
    await again.hear([says('x', [A])]);
    assert.deepEqual([...again.setOf('schedulers')], [A]);
  });

  test('a process that does not lead changes nothing that is decided, whatever its settings say; when it leads they count', async () => {
    await using core = await createTestCore({ trust: NOBODY });
    const { db } = core.rooms;
    await db.deleteFrom('trust').execute();
    const schedulersOf = (trust: Trust) => [...trust.setOf('schedulers')];
    const open = (schedulers: readonly string[] | undefined, leads: boolean) =>
      Trust.open({ db, given: schedulers ? { schedulers } : {}, peers: 0, leads, log });
    const first = await open([A], false);
    assert.deepEqual(schedulersOf(first), [A], 'nobody had decided yet');
    const other = await open([B], false);
    const without = await open(undefined, false);
    assert.deepEqual([other, without].map(schedulersOf), [[A], [A]]);
    await first.follow();
    assert.deepEqual(schedulersOf(first), [A]);
    await other.insist();
    await first.follow();
    assert.deepEqual([other, first].map(schedulersOf), [[B], [B]]);
    assert.deepEqual(schedulersOf(await open([A], true)), [A]);
  });

  test('whether credit is enforced changes once no batch is decided by the rule before', async () => {
    await using core = await createTestCore({ trust: NOBODY });
    const { db } = core.rooms;
    const trust = await Trust.open({ db, given: {}, peers: 1, log });
    let isOver = false;
    let hearing: Promise<void> | undefined;
    await db.transaction().execute(async (batch) => {
      await lockWrites(batch);
      hearing = trust.hear([{ credit_enforcement: told('x', ['yes']) }]).finally(() => {
        isOver = true;
      });
      await until('it waits, or has changed', async () => isOver || (await isAnyWaiting(db)));
      assert.equal(isOver, false);
    });
    await hearing;
    assert.ok(trust.isCreditEnforced);
  });

  test('S3: what has not the form of a list of addresses is not believed', () => {
    const lists = (value: unknown) =>
      readPeerTrust('x', { address: A, trust: { schedulers: { value, source: 'setting' } } }, B);
    assert.deepEqual(lists([A])?.schedulers?.value, [A]);
    for (const wrong of ['x', [1], ['0x12'], Array.from({ length: 101 }, () => A), undefined])
      assert.deepEqual(lists(wrong), {});
    assert.equal(readPeerTrust('x', { address: A }, B), undefined);
    // A node that lists itself among its peers hears nothing new.
    const own = readPeerTrust(
      'x',
      { address: B, trust: { schedulers: { value: [A], source: 'setting' } } },
      B,
    );
    assert.equal(own?.schedulers?.source, 'unset');
  });

  test('S3: a second core node with nothing but its peer set trusts whom the peer does, and says so', async () => {
    await using first = await createTestCore();
    const url = await first.listen();
    await using second = await createTestCore({ trust: NOBODY, trustUrls: [url] });
    const health = async () => (await second.get('/health')).body.checks.trust;
    assert.deepEqual(await health(), { status: 'ok' });
    const id = await createMachine(first, 5);
    await place(first, id);
    const lines = (await first.get('/messages?limit=50')).body.messages as {
      signed_text: string;
      signature: string;
      sender: string;
    }[];
    const copy = async () => {
      for (const { signed_text, signature, sender } of lines)
        await second.post(
          '/messages',
          `{"message":${signed_text},"signature":"${signature}","address":"${sender}"}`,
        );
    };
    await copy();
    assert.equal((await second.get(`/instances/${id}`)).body.ipv6, '');
    await second.rooms.learnTrust();
    await second.rooms.deriveTrust();
    const [theirs, ours] = await Promise.all(
      [first, second].map(async (core) => (await core.get('/info/public.json')).body.trust),
    );
    assert.deepEqual(ours.schedulers, { value: theirs.schedulers.value, source: 'peers' });
    assert.equal((await second.get(`/instances/${id}`)).body.ipv6, '2001:db8::3:0:0:1');
    const [one, other] = await Promise.all([first, second].map((core) => digestState(core.rooms.db)));
    assert.deepEqual(other!.derived, one!.derived);
  });
});
