import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNetworkMessage, CoreClient, createSigner, publishMessage, type Signer } from '@skerry/client';
import { findFreePort, loadOrCreateKeyFile, VERSION } from '@skerry/kit';
import { fieldsOf, METRICS_POST_TYPES, SCORING_CHANNEL } from '@skerry/protocol';
import { TestDaemon } from '../credits/testing/daemon.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';
import { say, until } from '../testing/shell.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
/** Of the monitor's hour, seconds. */
const HOUR = 5;
const HOURS_MIN = 3;
/** Of which scores are computed, seconds. */
const PERIOD = 600;

interface Scores {
  readonly scores: null | {
    readonly ccn: readonly { readonly measurements: { readonly record_count: number } }[];
  };
  readonly settings: object;
}

const isReport = ({ content }: { readonly content?: unknown }) =>
  (METRICS_POST_TYPES as readonly unknown[]).includes(fieldsOf(content).type);

/** Every message that a key signed, newest first. */
const listOf = async (core: CoreClient<Signer>) =>
  (await core.listMessages({ addresses: core.signer.address, limit: 100 })).messages;

/** Costs about ten CPU seconds. */
test('the key of a monitor leaks: with a new one, nodes keep their hours and scores', async () => {
  await using stack = new AsyncDisposableStack();
  const { path: dir } = stack.use(await createTestDir());
  const keyOf = async (name: string) => createSigner(await loadOrCreateKeyFile(join(dir, name, 'key')));
  const [old, next] = [await keyOf('old'), await keyOf('next')];
  const port = String(await findFreePort());
  const core = stack.use(
    new TestDaemon('core', {
      ...{ SKERRY_CORE_DATA_DIR: join(dir, 'core'), SKERRY_CORE_HOST: '127.0.0.1', SKERRY_CORE_PORT: port },
      SKERRY_CORE_SCORING_PUBLISHERS: old.address,
    }),
  );
  await core.start();
  // Where no system is known there is no score.
  await writeFile(join(dir, 'systems'), '127.0.0.0/8 64512 Test\n');
  const monitor = stack.use(
    new TestDaemon('monitor', {
      ...{ SKERRY_MONITOR_DATA_DIR: join(dir, 'old'), SKERRY_MONITOR_CORE_URL: core.url },
      ...{ SKERRY_MONITOR_HOUR_SECONDS: String(HOUR), SKERRY_MONITOR_SCORES_EVERY_HOURS: '1' },
      ...{ SKERRY_MONITOR_CORE_NODES: core.url, SKERRY_MONITOR_ALLOW_PRIVATE: 'yes' },
      SKERRY_MONITOR_RELEASES: `skerry-core@${VERSION}`,
      SKERRY_MONITOR_ASN_FILE: join(dir, 'systems'),
    }),
  );
  await monitor.start();
  const ask = async (...args: string[]) => {
    const environment = { SKERRY_HOME: dir, SKERRY_CORE_URL: core.url };
    const { out, err, code } = await skerryHere(environment, [...args, '--json']);
    assert.equal(code, 0, err || out);
    return JSON.parse(out);
  };
  const recordsOf = ({ scores }: Scores) => scores?.ccn[0]?.measurements.record_count ?? 0;
  const publishedBy = async (publisher: Signer) => {
    const environment = { SKERRY_HOME: dir, SKERRY_CORE_URL: core.url };
    const given = ['score', 'latest', '--publisher', publisher.address, '--json'];
    const { out, code } = await skerryHere(environment, given);
    return code === 0 ? recordsOf(JSON.parse(out)) : 0;
  };
  await until('a score of some hours', TIMEOUT_MS, async () => (await publishedBy(old)) >= HOURS_MIN);
  await monitor.kill();
  const moment = Math.floor(Date.now() / 1000) + 1;
  await until('the leak', TIMEOUT_MS, async () => Date.now() > (moment + 1) * 1_000);
  const compute = (publisher: Signer, ...more: string[]): Promise<Scores> => {
    const period = ['--from', String(moment - PERIOD), '--to', String(moment)];
    return ask('score', 'compute', '--publisher', publisher.address, ...period, ...more);
  };
  const before = await compute(old);
  const settings = ['--settings', JSON.stringify(before.settings)];
  const hours = recordsOf(before);
  assert.ok(hours >= HOURS_MIN);
  say(`${hours} hours were measured`);

  // A thief measures everything again as it likes, an hour ago by its dates, and takes back what was there.
  const client = new CoreClient({ url: core.url, signer: old });
  const signed = await listOf(client);
  const reports = signed.filter(isReport);
  assert.ok(reports.length >= HOURS_MIN);
  const { content } = JSON.parse(JSON.stringify(reports[0])) as { content: Record<string, unknown> };
  const forged = { type: 'POST', channel: SCORING_CHANNEL, time: moment - 3_600, sync: true };
  const bad = buildNetworkMessage(
    { ...forged, content: { type: content.type, content: content.content } },
    old,
  );
  await publishMessage(core.url, bad.body);
  await client.forget(signed.map(({ item_hash }) => item_hash));
  assert.equal((await listOf(client)).filter(isReport).length, 1);
  say('a thief took them back');

  const adopt = (...more: string[]) =>
    ask(
      'monitor',
      'adopt',
      old.address,
      '--until',
      String(moment),
      '--key-file',
      join(dir, 'next', 'key'),
      ...more,
    );
  const adopted = await adopt();
  assert.deepEqual([adopted.too_late, adopted.unreadable, adopted.publishers], [1, 0, [next.address]]);
  assert.ok(adopted.signed >= reports.length);
  const again = await adopt();
  assert.deepEqual([again.signed, again.signed_before], [0, adopted.signed]);

  await core.kill();
  core.set({ SKERRY_CORE_SCORING_PUBLISHERS: next.address });
  await core.start();
  const after = await compute(next, ...settings);
  assert.deepEqual(after.scores, before.scores);
  // The new monitor goes on from there.
  monitor.set({ SKERRY_MONITOR_DATA_DIR: join(dir, 'next') });
  await monitor.start();
  await until(
    'the new monitor counts them with its own',
    TIMEOUT_MS,
    async () => (await publishedBy(next)) > hours,
  );
});
