import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore, type TestCore } from '../../testing/core.ts';
import { IpfsFiles } from './ipfs-files.ts';
import { createKuboIpfs } from './kubo.ts';
import { IPFS_LIMITS } from './limits.ts';
import { createPinBook } from './pin-book.ts';
import { TestDaemon } from './testing/daemon.ts';

const GRACE_MS = 3_600_000;
const PATIENCE_MS = 60_000;
const LIMIT = 1 << 30;
const { signal } = new AbortController();

describe('files of a node that a kubo daemon keeps', () => {
  let core: TestCore;
  let daemon: TestDaemon;
  let nowMs: number;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());
  beforeEach(async () => {
    nowMs = Date.now();
    daemon = await TestDaemon.start();
  });
  afterEach(async () => {
    await daemon[Symbol.asyncDispose]();
    await core.rooms.db.deleteFrom('ipfs_dags').execute();
    await core.rooms.db.deleteFrom('files').execute();
  });

  /** One process of the node. */
  function open(): IpfsFiles {
    const { db, pipeline } = core.rooms;
    const now = () => nowMs;
    const settings = { url: daemon.url, authorization: undefined, timeoutMs: PATIENCE_MS };
    const ipfs = createKuboIpfs(settings, createPinBook(db, now));
    return new IpfsFiles({ db, ipfs, pipeline, now, graceMs: GRACE_MS, timeoutMs: PATIENCE_MS });
  }
  const add = async () => {
    const bytes = Readable.from([randomBytes(1_000)]);
    return (await open().add(bytes, { cidVersion: 0, limitBytes: LIMIT, signal })).id;
  };
  const named = async () => {
    const rows = await core.rooms.db.selectFrom('files').select('hash').execute();
    return rows.map(({ hash }) => hash);
  };
  const roots = async () => {
    const rows = await core.rooms.db.selectFrom('ipfs_dags').select('root').execute();
    return rows.map(({ root }) => root);
  };
  const isWaiting = async () => {
    const { rows } = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
      core.rooms.db,
    );
    return rows.length > 0;
  };

  test('what one process pins while another lets go of it stays pinned', async () => {
    const id = await add();
    nowMs += GRACE_MS + 1_000;
    let pinning: Promise<unknown> | undefined;
    daemon.beforeUnpin = async () => {
      let isPinned = false;
      pinning = open()
        .pin(id, { limitBytes: LIMIT, signal })
        .then(() => {
          isPinned = true;
        });
      await until('it is pinned, or waits', async () => isPinned || (await isWaiting()));
    };
    await open().sweep();
    assert.ok(pinning, 'the sweep let go of it');
    await pinning;
    assert.deepEqual(await named(), [id.text]);
    assert.ok(daemon.pins.has(id.text));
  });

  test('what somebody has begun to pin is let go of neither as a file nor at the daemon', async () => {
    const id = await add();
    nowMs += GRACE_MS + 1_000;
    await createPinBook(core.rooms.db, () => nowMs).begin(id.text);
    await open().sweep();
    assert.deepEqual(await named(), [id.text]);
    assert.ok(daemon.pins.has(id.text));
  });

  test('who begins to pin after the clock was set back is known to have begun later', async () => {
    const root = 'a root';
    const book = createPinBook(core.rooms.db, () => nowMs);
    const begunMs = await book.begin(root);
    nowMs -= 60_000;
    assert.equal(await book.begin(root), begunMs + 1);
    await book.letGo(root, begunMs + 1, () => assert.fail('somebody else has begun to pin it'));
    assert.deepEqual(await roots(), [root]);
  });

  /** Files that are kept no more; the daemon will not let go of some of them. */
  const addUnkept = async (count: number, failing: number) => {
    const cids: string[] = [];
    while (cids.length < count) cids.push((await add()).text);
    cids.sort();
    const stuck = cids.slice(0, failing);
    for (const [index, cid] of cids.entries())
      await sql`update files set stored_at = to_timestamp(${nowMs / 1_000 + index}::float8) where hash = ${cid}`.execute(
        core.rooms.db,
      );
    nowMs += GRACE_MS + 60_000;
    daemon.beforeUnpin = async (cid) => {
      if (stuck.includes(cid)) throw new Error('this one stays');
    };
    return stuck;
  };

  test('a CID that will not go holds up no file behind it', async () => {
    const files = open();
    const stuck = await addUnkept(3, 1);
    await assert.rejects(files.sweep(), /this one stays/);
    assert.deepEqual([await named(), [...daemon.pins]], [[], stuck]);
  });

  test('a CID that will not go starves none that became no file', async () => {
    const files = open();
    const stuck = await addUnkept(3, 1);
    await core.rooms.db.deleteFrom('files').execute();
    await assert.rejects(files.sweep(), /this one stays/);
    assert.deepEqual([...daemon.pins], stuck);
  });

  test('where many will not go a round ends early, and the next one begins behind them', async () => {
    const files = open();
    const stuck = await addUnkept(IPFS_LIMITS.failedUnpins + 3, IPFS_LIMITS.failedUnpins);
    await core.rooms.db.deleteFrom('files').execute();
    await assert.rejects(files.sweep(), /this one stays/);
    assert.equal(daemon.pins.size, stuck.length + 3, 'it asked for no more');
    await files.sweep();
    assert.deepEqual([...daemon.pins].toSorted(), stuck);
  });

  test('a file that is too large for whoever asks for it now stays with those who have it', async () => {
    const kept = await add();
    const ask = async (id: typeof kept) => {
      daemon.dagBytes.set(id.text, LIMIT);
      await assert.rejects(open().pin(id, { limitBytes: LIMIT - 1, signal }), { code: 'FILE_TOO_LARGE' });
    };
    await ask(kept);
    assert.ok(daemon.pins.has(kept.text));
    await core.rooms.db.deleteFrom('files').execute();
    await ask(kept);
    assert.ok(!daemon.pins.has(kept.text), 'it was a file of nobody');
  });

  test('what the daemon would not let go of, and what became no file, goes at the next round', async () => {
    const id = await add();
    nowMs += GRACE_MS + 1_000;
    daemon.illness = 'refusing';
    await assert.rejects(open().sweep(), { code: 'IPFS_UNAVAILABLE' });
    assert.deepEqual([await named(), daemon.pins.size], [[], 1]);
    daemon.illness = undefined;
    await open().sweep();
    assert.deepEqual([await roots(), daemon.pins.has(id.text)], [[], false]);
    const other = await add();
    await core.rooms.db.deleteFrom('files').execute();
    await open().sweep();
    assert.ok(daemon.pins.has(other.text), 'somebody may be about to note it');
    nowMs += GRACE_MS + 1_000;
    await open().sweep();
    assert.deepEqual([await roots(), daemon.pins.size], [[], 0]);
  });
});
