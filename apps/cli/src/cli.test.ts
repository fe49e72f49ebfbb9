import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { skerryHere } from './testing/here.ts';
import { startDaemon } from './testing/parts.ts';
import { createTestDir } from './testing/run.ts';

const BIN = fileURLToPath(new URL('../bin/skerry.js', import.meta.url));
const RUNNER = fileURLToPath(new URL('../bin/node.js', import.meta.url));
/** Nothing listens on the discard port. */
const NOWHERE = 'http://127.0.0.1:9';
/** Only one that wrongly goes on takes as long. */
const SECOND_MS = 60_000;

const run = (home: string, ...args: string[]) =>
  skerryHere({ PATH: process.env.PATH, SKERRY_HOME: home, HOME: home }, args);

async function start(home: string, ...args: string[]) {
  const env = { ...bareEnvironment(), SKERRY_HOME: home, HOME: home };
  const child = spawn(process.execPath, [BIN, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SECOND_MS,
  });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { out, err, code: code as number };
}

/** A port of this machine that somebody else uses. */
async function listen() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

test('a key is made, shown and listed, and never printed', async () => {
  await using home = await createTestDir();
  const none = await start(home.path, 'key', 'show');
  assert.equal(none.code, 3);
  assert.match(none.err, /^error: no key yet.* \(KEY_NOT_FOUND\)\nhint: run "skerry key new"\n$/);
  const made = await start(home.path, 'key', 'new', '--json');
  const { address, path } = JSON.parse(made.out) as { address: string; path: string };
  const secret = (await readFile(path, 'utf8')).trim();
  const shown = await run(home.path, 'key', 'show');
  assert.match(shown.out, new RegExp(`^name: default\naddress: ${address}\nfile: `));
  assert.equal((await run(home.path, 'key', 'new')).code, 1);
  const listed = await run(home.path, 'key', 'list');
  assert.match(listed.out, new RegExp(`^NAME +ADDRESS\ndefault +${address}\n$`));
  for (const { out, err } of [made, shown, listed]) assert.ok(!(out + err).includes(secret.slice(2)));
});

test('where no directory can be made a command runs all the same, and one that needs it says so', async () => {
  const [list, made] = await Promise.all([start('/proc', 'key', 'list'), start('/proc', 'key', 'new')]);
  assert.equal(list.code, 0);
  assert.match(list.err, /^no key yet/);
  assert.equal(made.code, 2);
  assert.match(made.err, /^error: the directory \/proc\/.* cannot be made/);
});

test('a full disk below standard output is told in a sentence, or in JSON', async () => {
  await using home = await createTestDir();
  const env = { ...bareEnvironment(), SKERRY_HOME: home.path, HOME: home.path };
  await using full = await open('/dev/full', 'w');
  const [people, programs] = await Promise.all(
    [[], ['--json']].map(async (more) => {
      const args = [BIN, 'network', 'list', ...more];
      const child = spawn(process.execPath, args, { env, stdio: ['ignore', full.fd, 'pipe'] });
      const [err, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
      return { err, code: code as number };
    }),
  );
  assert.equal(people!.code, 1);
  assert.match(people!.err, /^error: ENOSPC: no space left on device, write \(INTERNAL\)\n$/);
  assert.equal((JSON.parse(programs!.err) as { code: string }).code, 'INTERNAL');
});

test('why a daemon does not start is an error to whoever reads the journal by priority', async () => {
  await using home = await createTestDir();
  const path = join(home.path, 'journal');
  await using journal = await open(path, 'w');
  const { dev, ino } = await journal.stat({ bigint: true });
  const env = {
    ...{ ...bareEnvironment(), SKERRY_HOME: home.path, HOME: home.path },
    ...{ SKERRY_MONITOR_HOUR_SECONDS: 'soon', JOURNAL_STREAM: `${dev}:${ino}` },
  };
  const child = spawn(process.execPath, [BIN, 'monitor'], { env, stdio: ['ignore', 'ignore', journal.fd] });
  assert.deepEqual(await once(child, 'exit'), [2, null]);
  const said = await readFile(path, 'utf8');
  assert.match(said, /^(<3>.*\n)+$/);
  assert.match(said, /SKERRY_MONITOR_HOUR_SECONDS.*\(INVALID_CONFIG\)/s);
});

test('the four words of a host name need nobody else', async () => {
  await using home = await createTestDir();
  const hash = 'f'.repeat(64);
  const words = 'zoo-zoo-zoo-zoo';
  const nobody = ['--gateway', NOWHERE];
  const name = await run(home.path, 'domain', 'name', hash, ...nobody);
  assert.deepEqual([name.out, name.code], [`${words}\n`, 0]);
  assert.match(name.err, /^no gateway answers, /);
  const json = await run(home.path, 'domain', 'name', hash, '--json', ...nobody);
  assert.deepEqual(JSON.parse(json.out), { instance_hash: hash, subdomain: words, hostname: words });
  assert.equal(json.err, '');
});

test('wrong use ends with 2 and names the help', async () => {
  await using home = await createTestDir();
  const cases: [string[], RegExp][] = [
    [['nonsense'], /unknown command 'nonsense'.*\nhint: see "skerry --help"/],
    [
      ['key', 'nwe'],
      /unknown command 'nwe' \(Did you mean new\?\): skerry key has new, import, export, show, list \(INVALID_PARAMETERS\)\nhint: see "skerry key --help"/,
    ],
    [['instance', 'create'], /required option '--name <name>'.*\nhint: see "skerry instance create --help"/],
    [['instance', 'create', '--name', 'x', '--memory', 'lots'], /Expected whole MiB/],
    [['instance', 'create', '--nmae', 'x'], /unknown option '--nmae' \(Did you mean --name\?\)/],
    [['instance', 'start'], /missing required argument/],
    [['message', 'get', 'abc'], /\(INVALID_HASH\)/],
    [['message', 'post', '--content', '[]'], /\(INVALID_CONTENT\)/],
    [['node', 'diff', 'x', 'y'], /argument 'first'.*http or https.*\nhint: see "skerry node diff --help"/],
    [['network', 'add', 'x', 'y'], /argument 'url'.*\nhint: see "skerry network add --help"/],
    [['backup', 'show', '/'], /\/ is a directory \(INVALID_PARAMETERS\)/],
    [['message', 'forget', 'abc'], /\(INVALID_HASH\)/],
    [['key', 'import', '/'], /\/ is a directory \(INVALID_PARAMETERS\)/],
    [['program', 'create', '/'], /\/ is a directory: .*\.zip.*\(INVALID_PARAMETERS\)/],
    [['indexer', 'add', 'ethereum', `0x${'0'.repeat(40)}`, '--abi', '["event X("]'], /\(INVALID_ABI\)/],
    [['score', 'release', 'skerry-core', '1.2.0', '--on', 'yesterday'], /YYYY-MM-DD.*\(INVALID_PARAMETERS\)/],
    [['domain', 'lookup', 'not-four-words-here'], /\(INVALID_HOSTNAME\)/],
    [['status', '--core', 'localhost:4024'], /http or https address/],
    [['core', 'confg'], /unknown command 'confg': skerry core has config, address .*\n.*core --help"/],
    [
      ['instance', 'snapshot', 'restore', 'web', 'x'],
      /skerry instance snapshot has list, create, delete; there is "skerry instance restore" \(INVALID_PARAMETERS\)/,
    ],
    [['completion', 'bsh'], /skerry completion has bash, zsh, fish \(INVALID_PARAMETERS\)/],
    [['core', 'config', 'x'], /too many arguments for 'config'/],
    [
      ['key', 'new', 'second'],
      /too many arguments for 'new'.* A name is given with --name\. \(INVALID_PARAMETERS\)\nhint: see "skerry key new --help"/,
    ],
    [['key', 'import', 'third', 'FILE'], /too many arguments for 'import'.* --name\. /],
    [
      ['key', 'new', 'x', '--name', 'y'],
      /too many arguments for 'new'\. Expected 0 arguments but got 1[^.]*\. \(/,
    ],
    [['credit', 'history', '--kind', 'gift'], /Expected one of purchase, expense\./],
    [['webhook', 'deliveries', 'ID', '--state', 'gone'], /Expected one of waiting, delivered, dead\./],
    [['restore', 'none', '--role', 'web'], /--role must be one of core, .*, not web \(INVALID_PARAMETERS\)/],
  ];
  for (const [args, expected] of cases) {
    const { out, err, code } = await run(home.path, ...args);
    assert.equal(code, 2, `${args.join(' ')}: ${err}`);
    assert.match(err, expected);
    assert.equal(out, '');
  }
  const json = await run(home.path, 'nonsense', '--json');
  assert.equal((JSON.parse(json.err) as { code: string }).code, 'INVALID_PARAMETERS');
});

test('a group without a command prints its help and ends with 2', async () => {
  await using home = await createTestDir();
  const { out, err, code } = await run(home.path, 'instance');
  assert.deepEqual([out, code], ['', 2]);
  assert.match(err, /Usage: skerry instance/);
  assert.doesNotMatch(err, /error:/);
});

test('a group without a command names its commands to a program, and help names a command that there is not', async () => {
  await using home = await createTestDir();
  const group = await run(home.path, 'key', '--json');
  assert.deepEqual([group.out, group.code], ['', 2]);
  assert.deepEqual(JSON.parse(group.err), {
    error: 'which command of skerry key? There are new, import, export, show, list',
    status: 'error',
    code: 'INVALID_PARAMETERS',
    hint: 'see "skerry key --help"',
  });
  const all = await run(home.path, '--json');
  assert.match((JSON.parse(all.err) as { error: string }).error, /^which command of skerry\? There are up, /);

  const help = await run(home.path, 'help', 'instnce');
  assert.deepEqual([help.out, help.code], ['', 2]);
  assert.match(
    help.err,
    /\nerror: unknown command 'instnce' \(Did you mean instance\?\) \(INVALID_PARAMETERS\)\n/,
  );
  const json = await run(home.path, 'key', 'help', 'nwe', '--json');
  assert.match((JSON.parse(json.err) as { error: string }).error, /^unknown command 'nwe'/);
});

test('whoever saves a daemon of "skerry up" by its role alone is told where its data are', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'data', 'devnet', 'core');
  await mkdir(dataDir, { recursive: true });
  await writeFile(join(dataDir, 'node.key'), '');
  const { err, code } = await run(home.path, 'backup', '-', '--role', 'core');
  assert.equal(code, 2);
  assert.ok(err.includes(`name it with --data-dir ${dataDir} for that of "skerry up"`), err);
});

test('a wrong argument is told by its name', async () => {
  await using home = await createTestDir();
  const { err, code } = await run(home.path, 'join', 'foo');
  assert.equal(code, 2);
  assert.match(err, /^error: argument 'url' cannot be 'foo'\. Expected an http or https address/);
});

test('every command has help with an example', async () => {
  await using home = await createTestDir();
  const groups = {
    ...{ key: 5, message: 4, post: 2, aggregate: 2, file: 4, instance: 16, domain: 6, program: 6 },
    ...{ vrf: 2, credit: 10 },
  };
  const commands = ['up', 'status', 'core', 'scheduler', 'compute', 'gateway'].map((name) => [name]);
  for (const [group, count] of Object.entries(groups)) {
    const { out } = await run(home.path, group, '--help');
    const names = [...out.split('Commands:\n')[1]!.matchAll(/^ {2}([a-z]+)\b/gm)]
      .map((match) => match[1]!)
      .filter((name) => name !== 'help');
    assert.equal(names.length, count, group);
    for (const name of names) commands.push([group, name]);
  }
  const helps = await Promise.all(commands.map((command) => run(home.path, ...command, '--help')));
  for (const [index, { out, code }] of helps.entries()) {
    assert.equal(code, 0);
    assert.match(out, /\nExamples?:\n {2}\$ |\n {2}\$ /, commands[index]!.join(' '));
  }
});

test('no core node: 5, for people and for programs', async () => {
  await using home = await createTestDir();
  const people = await run(home.path, 'message', 'list', '--core', NOWHERE);
  assert.equal(people.code, 5);
  assert.match(people.err, /does not answer.*\(UPSTREAM_UNAVAILABLE\)\nhint: is the network running\?/);
  const status = await run(home.path, 'status', '--core', NOWHERE);
  assert.deepEqual([status.code, status.err.split('?')[0]], [5, 'is the network running']);
  const programs = await run(home.path, 'message', 'list', '--core', NOWHERE, '--json');
  assert.equal((JSON.parse(programs.err) as { code: string }).code, 'UPSTREAM_UNAVAILABLE');
});

test('with --json, up and program run tell their failures as JSON in lines, the error last', async () => {
  await using home = await createTestDir();
  await using taken = await listen();
  const file = join(home.path, 'file');
  await writeFile(file, '');
  const port = String(taken.port);
  const cases: [string[], code: string, exitCode: number][] = [
    [['up', '--core-port', port], 'PORT_IN_USE', 1],
    [['up', '--data-dir', file], 'INVALID_CONFIG', 2],
    [['up', '--cores', '99'], 'INVALID_PARAMETERS', 2],
    [['up', '--core-port', 'nope'], 'INVALID_PARAMETERS', 2],
    [['program', 'run', 'f'.repeat(64), '--core', NOWHERE], 'UPSTREAM_UNAVAILABLE', 5],
    [['program', 'run', 'nope'], 'INVALID_HASH', 2],
    [['program', 'run', 'f'.repeat(64), '--var', 'nope'], 'INVALID_PARAMETERS', 2],
  ];
  for (const [args, code, exitCode] of cases) {
    const ran = await run(home.path, ...args, '--json');
    assert.deepEqual([ran.out, ran.code], ['', exitCode], `${args.join(' ')}: ${ran.err}`);
    const lines = ran.err.trimEnd().split('\n');
    const records = lines.map((line) => JSON.parse(line) as { code?: string; status?: string });
    assert.deepEqual([records.at(-1)!.status, records.at(-1)!.code], ['error', code], ran.err);
  }
});

test("a daemon's settings are printed without its secrets", async () => {
  await using home = await createTestDir();
  const env = { ...bareEnvironment(), SKERRY_HOME: home.path, DATABASE_URL: 'postgres://me:hush@db/x' };
  await mkdir(join(home.path, 'config'));
  await writeFile(join(home.path, 'config', 'core.env'), 'SKERRY_CORE_NAME=of-the-file\n');
  const child = spawn(process.execPath, [BIN, 'core', 'config'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const out = await text(child.stdout);
  assert.match(out, new RegExp(`^SKERRY_CORE_DATA_DIR=${join(home.path, 'data', 'core')}$`, 'm'));
  assert.match(out, /^SKERRY_CORE_DATABASE_URL=\(set, hidden\)$/m);
  assert.ok(!out.includes('hush'));
  assert.match(out, /^SKERRY_CORE_NAME=of-the-file$/m);
});

test('a setting that is wrong is wrong use', async () => {
  await using home = await createTestDir();
  const env = { ...bareEnvironment(), SKERRY_HOME: home.path, SKERRY_CORE_PROT: '1' };
  const child = spawn(process.execPath, [BIN, 'core'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  assert.equal(code, 2);
  assert.match(
    err,
    /SKERRY_CORE_PROT is not a known setting; did you mean SKERRY_CORE_PORT\? \(INVALID_CONFIG\)/,
  );
  const level = await skerryHere({ SKERRY_HOME: home.path, SKERRY_LOG_LEVEL: 'warning' }, ['scheduler']);
  assert.equal(level.code, 2);
  assert.match(
    level.err,
    /SKERRY_LOG_LEVEL must be one of fatal, error, warn, .*, not "warning" \(INVALID_CONFIG\)/,
  );
});

test('a second daemon in the directory of another does not start, and says whose it is', async () => {
  await using home = await createTestDir();
  const settings = { SKERRY_HOME: home.path, SKERRY_SCHEDULER_PORT: '0', SKERRY_SCHEDULER_CORE_URL: NOWHERE };
  await using first = await startDaemon('scheduler', settings);
  const env = { ...bareEnvironment(), ...settings };
  const second = spawn(process.execPath, [BIN, 'scheduler'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: SECOND_MS,
  });
  const [out, [code]] = await Promise.all([text(second.stdout), once(second, 'exit')]);
  assert.equal(code, 1);
  assert.match(
    out,
    new RegExp(`process ${first.pid} works in ${join(home.path, 'data', 'scheduler')}: stop it first`),
  );
});

test('the launcher passes on arguments, exit codes and signals', async (t) => {
  const code = spawn(process.execPath, [RUNNER, '-e', 'process.exit(7)'], { stdio: 'ignore' });
  assert.deepEqual(await once(code, 'exit'), [7, null]);
  const program =
    'process.on("SIGTERM", () => process.exit(9)); console.log("up"); setInterval(() => {}, 1000)';
  const child = spawn(process.execPath, [RUNNER, '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  await awaitOutput(child, 'the launcher', hear(child, ['stderr']));
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [9, null]);
});
