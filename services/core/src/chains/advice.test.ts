import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { NO_NETWORKS } from '@skerry/indexer';
import { createLogger } from '@skerry/kit';
import type { Schema } from '../store/schema.ts';
import { MIGRATIONS } from '../testing/core.ts';
import { createChainAdvice } from './advice.ts';
import { parseAnchorSettings } from './anchoring/settings.ts';
import { FUNDED_KEY } from './anchoring/testing/setup.ts';

const STALL_MS = 60_000;

test('chains that stand still, and archives of its own that a node refuses, are told with the settings that mend them', async (t) => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ log, migrations: MIGRATIONS });
  const directory = await mkdtemp(join(tmpdir(), 'skerry-advice-'));
  t.after(() => rm(directory, { recursive: true }));
  const keyFile = join(directory, 'key');
  await writeFile(keyFile, `${FUNDED_KEY}\n`, { mode: 0o600 });
  const { pool } = database;
  let uptimeMs = STALL_MS + 1;
  const adviseWith = (emitter: string) => {
    const anchor = {
      network: { name: 'anvil', chain_id: 31337, endpoints: ['http://127.0.0.1:9'], stall_ms: STALL_MS },
      ...{ chain: 'ETH', contract: `0x${'a1'.repeat(20)}`, emitters: [emitter] },
      packing: { key_file: keyFile },
    };
    const { anchors, indexer: settings } = parseAnchorSettings({ anchors: [anchor] }, NO_NETWORKS);
    const indexer = { pool, settings, stallMs: () => STALL_MS };
    return createChainAdvice({ indexer, anchors, now: Date.now, runningMs: () => uptimeMs })();
  };
  const own = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
  assert.equal(await adviseWith(own), undefined);
  const refused = await adviseWith(`0x${'b2'.repeat(20)}`);
  assert.match(
    refused!,
    new RegExp(`refuses the archives.*${own} is missing from the emitters of anvil.*_ANCHOR_FILE`),
  );

  const put = (columns: string) =>
    pool.query(`insert into indexer_networks (name, chain_id) values ('anvil', 31337) on conflict do nothing;
      update indexer_networks set ${columns}`);
  await put(`head_number = 5, progress_at = now(), backfilled_at = now()`);
  assert.equal(await adviseWith(own), undefined);
  const long = `now() - interval '2 minutes'`;
  await put(`head_number = null, progress_at = ${long}, backfilled_at = ${long}`);
  assert.match(
    (await adviseWith(own))!,
    /nothing new was read of the chain anvil for 60 s.*SKERRY_CORE_ANCHOR_FILE/,
  );
  // A process that has just begun has not stood still yet.
  uptimeMs = STALL_MS;
  assert.equal(await adviseWith(own), undefined);
  await put(`halt_code = 'WRONG_CHAIN', halt_message = 'another chain'`);
  assert.match((await adviseWith(own))!, /anvil is not read on \(WRONG_CHAIN\): another chain/);
});
