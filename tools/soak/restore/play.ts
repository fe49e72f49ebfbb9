// A core node is saved under load, lost with all it had, restored, and brought up to date by its peer: what docs/backup.md says, block by
// block. Run by restore.soak.test.ts in namespaces of its own: play.ts embedded|server DIRECTORY
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CoreClient } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { startDaemon } from '../../../apps/cli/src/testing/parts.ts';
import { say, succeed } from '../../../apps/cli/src/testing/shell.ts';
import { follow, readGuide } from '../../guides/follow.ts';
import { Machine } from './machine.ts';
import { EXAMPLE_TIME, PAGE, SECTIONS } from './page.ts';
import { fill, Writers } from './writers.ts';

const [database = '', directory = ''] = process.argv.slice(2);
const isServer = database === 'server';
const NODE = { port: 4024, url: 'http://127.0.0.1:4024' };
const PEER = { port: 4124, url: 'http://127.0.0.1:4124' };
const DATABASE_URL = 'postgresql://skerry:secret@127.0.0.1/skerry';
/** So many more after each step, so that there is something to lose. */
const MORE = 100;
const DATABASE = '/var/lib/postgresql/15/main';
/** There while the embedded server runs, which ends when its node is gone. */
const EMBEDDED = join(directory, 'skerry/postgres/cluster/postmaster.pid');

const machine = await (async () => {
  await mkdir(directory, { recursive: true });
  return Machine.open(directory, {
    'https://core.example.org': NODE.url,
    'https://core2.example.org': PEER.url,
  });
})();

const settings: Readonly<Record<string, string>> = {
  SKERRY_CORE_DATA_DIR: machine.data,
  SKERRY_CORE_HOST: '127.0.0.1',
  SKERRY_CORE_PORT: String(NODE.port),
  SKERRY_CORE_RATE_LIMITS: 'no',
  SKERRY_CORE_SYNC_INTERVAL_SECONDS: '2',
  SKERRY_CORE_ALLOW_PRIVATE: 'yes',
  ...(isServer ? { SKERRY_CORE_DATABASE_URL: DATABASE_URL } : {}),
};
const startNode = () => startDaemon('core', { ...settings, SKERRY_CORE_PEERS: PEER.url });
/** Where its peer does not find it. */
const startAlone = () =>
  startDaemon('core', { ...settings, SKERRY_CORE_PORT: '0', SKERRY_CORE_GOSSIP: 'no' });
const startPeer = () =>
  startDaemon('core', {
    ...settings,
    SKERRY_CORE_DATABASE_URL: '',
    SKERRY_CORE_DATA_DIR: join(directory, 'peer'),
    SKERRY_CORE_PORT: String(PEER.port),
    SKERRY_CORE_PEERS: NODE.url,
  });

/** What was restored is as of some time between these, in milliseconds: of a backup without a log, while it was made. */
interface Moment {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What an operator keeps elsewhere, put where it belongs. */
const putSettings = () =>
  writeFile(
    '/etc/skerry/core.env',
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );

async function timed(body: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await body();
  return (performance.now() - startMs) / 1_000;
}

/** Follows the blocks below a heading, or some of them. */
async function followSection(section: string, from = 0, to = Number.POSITIVE_INFINITY): Promise<void> {
  await follow(readGuide(PAGE, section).slice(from, to), machine);
}

/** The plain copy that backups and restores are compared with. */
const copy = (from: readonly string[], to: string) =>
  timed(async () => {
    await mkdir(to, { recursive: true });
    await succeed('cp', '--archive', ...from, to);
    await succeed('sync', '--file-system', to);
  });

async function digestOf(url: string) {
  const { cursor: _, ...digest } = (await (await fetch(`${url}/api/v0/state/digest`)).json()) as {
    cursor: string;
  };
  return digest;
}

const waitForEqualDigests = () =>
  until(
    'equal digests',
    () => Promise.all([NODE.url, PEER.url].map(digestOf)),
    ([one, two]) => JSON.stringify(one) === JSON.stringify(two),
    { limitMs: 600_000, everyMs: 200 },
  );

const moreOf = (writers: Writers) => {
  const count = writers.acknowledged.length + MORE;
  return until('more messages', () => writers.acknowledged.length >= count);
};

/** What was acknowledged is there, and what was begun after the moment is not. Gives how many of each. */
async function checkMoment(client: CoreClient, writers: Writers, moment: Moment) {
  const isThere = (hash: string) =>
    client.getMessage(hash).then(
      () => true,
      () => false,
    );
  const before = writers.acknowledged.filter(({ endedMs }) => endedMs < moment.fromMs);
  for (const { hash } of before) assert.ok(await isThere(hash), `${hash} was acknowledged before`);
  const after = writers.acknowledged.filter(({ begunMs }) => begunMs > moment.toMs);
  for (const { hash } of after) assert.ok(!(await isThere(hash)), `${hash} was sent afterwards`);
  return { before: before.length, after: after.length };
}

async function checkFiles(client: CoreClient, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    const bytes = Buffer.from(await (await client.getFile(hash)).arrayBuffer());
    assert.equal(createHash('sha256').update(bytes).digest('hex'), hash);
  }
}

async function makeServer(): Promise<void> {
  await machine.createServer();
  await machine.query("create role skerry login password 'secret'");
  await machine.query("create database skerry owner skerry encoding 'UTF8' template template0");
  await followSection(SECTIONS.setUpServer);
  // What an operator keeps elsewhere.
  await succeed('cp', '--archive', '/etc/pgbackrest.conf', directory);
}

/** The backup of the page, into files of another name each time. */
async function save(time: string): Promise<number> {
  const before = machine.standIns;
  machine.standIns = { ...before, '/srv/backup/core-': `${machine.backups}/${time}-` };
  const seconds = await timed(() =>
    isServer ? followSection(SECTIONS.saveServer) : followSection(SECTIONS.save, 1),
  );
  machine.standIns = before;
  return seconds;
}

/** A moment between two messages, once the log of what follows it is kept. */
async function chooseMoment(writers: Writers): Promise<Moment> {
  // pgBackRest takes a backup that ended in an earlier second.
  await machine.query('select pg_sleep(2)');
  await moreOf(writers);
  const fromMs = performance.now();
  const time = await machine.query('select clock_timestamp()');
  const toMs = performance.now();
  machine.standIns[EXAMPLE_TIME] = time;
  await moreOf(writers);
  const segment = await machine.query('select pg_walfile_name(pg_current_wal_lsn())');
  await until(
    'the log up to there is kept',
    () => machine.query('select last_archived_wal from pg_stat_archiver'),
    (kept) => kept >= segment,
    { everyMs: 500 },
  );
  return { fromMs, toMs };
}

/** As of the backup and of the moment; both on the same bytes. */
async function loseAll(underLoadS: number, writers: Writers) {
  await writers.stop();
  await waitForEqualDigests();
  const idleS = await save('idle');
  say(`nobody writes: backup ${idleS.toFixed(1)} s`);
  return { underLoadS, idleS };
}

async function restoreAll(): Promise<number> {
  await putSettings();
  if (!isServer) return timed(() => followSection(SECTIONS.restore, 0, 1));
  await machine.createServer();
  await succeed('cp', '--archive', join(directory, 'pgbackrest.conf'), '/etc');
  return timed(() => followSection(SECTIONS.restoreServer));
}

const ratio = (one: number, other: number) =>
  `${one.toFixed(1)} s, ${(one / other).toFixed(1)} times a plain copy (${other.toFixed(1)} s)`;

async function play(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  await putSettings();
  if (isServer) await makeServer();
  await followSection(SECTIONS.save, 0, 1);
  await succeed('cp', '/etc/skerry/backup-passphrase', directory);
  stack.use(await startPeer());
  let filled: Awaited<ReturnType<typeof fill>>;
  let writers: Writers;
  let moment: Moment;
  let backupS: number;
  const copied = join(directory, 'copy');
  {
    await using node = await startNode();
    filled = await fill(NODE.url);
    say(`${filled.files.length} files and ${filled.messages} messages are stored`);
    writers = stack.use(new Writers(NODE.url));
    await moreOf(writers);
    const begunMs = performance.now();
    const count = writers.acknowledged.length;
    const underLoadS = await save('load');
    moment = isServer ? await chooseMoment(writers) : { fromMs: begunMs, toMs: performance.now() };
    say(
      `backup under load ${underLoadS.toFixed(1)} s; ${writers.acknowledged.length - count} messages until the moment`,
    );
    await moreOf(writers);
    ({ idleS: backupS } = await loseAll(underLoadS, writers));
    process.kill(node.pid, 'SIGKILL');
    if (isServer) await machine.killServer();
    else await until('the embedded server has ended', () => !existsSync(EMBEDDED));
  }
  const copyS = await copy(isServer ? [machine.data, DATABASE] : [machine.data], copied);
  await machine.lose();
  say('the node is lost, with its disk');

  machine.standIns['/srv/backup/core-'] = `${machine.backups}/load-`;
  await succeed('cp', join(directory, 'backup-passphrase'), '/etc/skerry');
  const restoreS = await restoreAll();
  const backS = await copy([copied], join(directory, 'again'));
  const [, mib] = /^(\d+)/.exec(await succeed('du', '--summarize', '--block-size=M', copied)) ?? [];
  say(`${mib} MiB: backup ${ratio(backupS, copyS)}; restore ${ratio(restoreS, backS)}`);
  {
    await using alone = await startAlone();
    const client = new CoreClient({ url: alone.url });
    const seen = await checkMoment(client, writers, moment);
    await checkFiles(client, filled.files);
    say(
      `all ${seen.before} that were acknowledged before the moment are there, and none of ${seen.after} sent after it; all files are whole`,
    );
    assert.ok(seen.before > 0 && seen.after > 0);
  }
  const startMs = performance.now();
  await using _node = await startNode();
  await waitForEqualDigests();
  say(`equal digests ${((performance.now() - startMs) / 1_000).toFixed(1)} s after the start's begin`);
  await followSection(SECTIONS.restore, 1);
}

await play();
process.exit(0);
