import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import type { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';
import { renderDown } from '../network/down.ts';
import { renderFarewell } from '../network/welcome.ts';
import type { GlobalOptions } from '../options.ts';
import { skerryHere } from '../testing/here.ts';
import { startNamesake } from '../testing/namesake.ts';
import { createTestDir } from '../testing/run.ts';
import { chooseNetwork } from './choose.ts';
import { devnetIn, downMachinesAt, noteBegun, noteLocal, readLocalPlace, readRestarts } from './local.ts';
import { findService, isUsable } from './services.ts';
import { getNetwork, loadNetworks, type Networks, saveNetworks } from './store.ts';

const PROD = 'https://core.example.org';
const OTHER = 'https://core.example.net';
const NETWORKS: Networks = {
  current: 'prod',
  networks: {
    prod: { core: PROD, credit: 'https://credit.example.org', key: 'work' },
    other: { core: OTHER },
  },
};

const choose = (options: GlobalOptions, environment: Environment = {}, networks: Networks = NETWORKS) =>
  chooseNetwork({ options, environment, networks });
const coreOf = (...args: Parameters<typeof choose>) => choose(...args).network.core;

test('option before environment before current network before the local one', () => {
  const environment = { SKERRY_CORE_URL: 'http://a.example', SKERRY_NETWORK: 'other' };
  assert.equal(coreOf({ core: 'http://b.example' }, environment), 'http://b.example');
  assert.equal(coreOf({ network: 'prod' }, environment), PROD);
  assert.equal(coreOf({}, environment), 'http://a.example');
  assert.equal(coreOf({}, { SKERRY_NETWORK: 'other' }), OTHER);
  assert.equal(coreOf({}), PROD);
  assert.equal(coreOf({}, {}, { networks: {} }), 'http://127.0.0.1:4024');
  assert.equal(coreOf({}, { SKERRY_NETWORK: 'local' }), 'http://127.0.0.1:4024');
  assert.throws(() => choose({ network: 'nowhere' }), { code: 'NETWORK_UNKNOWN' });
  assert.throws(() => choose({ network: 'prod', core: OTHER }), { code: 'INVALID_PARAMETERS' });
  for (const url of ['ftp://x', 'https://me:hush@core.example.net'])
    assert.throws(
      () => choose({}, { SKERRY_CORE_URL: url }),
      ({ code, message }: AppError) => code === 'INVALID_CONFIG' && !message.includes('hush'),
    );
});

test('a current network that is gone stands in the way of nothing that is named', () => {
  const gone = { current: 'gone', networks: {} };
  assert.throws(() => choose({}, {}, gone), { code: 'NETWORK_UNKNOWN' });
  assert.equal(coreOf({ core: OTHER }, {}, gone), OTHER);
});

test('the key is the one of the network, unless another is named', () => {
  assert.equal(choose({}).keyName, 'work');
  assert.equal(choose({}, { SKERRY_KEY: 'mine' }).keyName, 'mine');
  assert.equal(choose({ key: 'his' }, { SKERRY_KEY: 'mine' }).keyName, 'his');
  assert.equal(choose({ core: OTHER }).keyName, 'default');
});

test('a variable that beats the current network is said', () => {
  assert.equal(
    choose({}, { SKERRY_CORE_URL: OTHER }).warning,
    `SKERRY_CORE_URL (${OTHER}) is used instead of the network prod`,
  );
  assert.match(
    choose({}, { SKERRY_CREDIT_URL: 'http://x' }).warning!,
    /^SKERRY_CREDIT_URL \(http:\/\/x\) is used/,
  );
  for (const quiet of [
    choose({}),
    choose({}, { SKERRY_CORE_URL: PROD }),
    choose({ core: OTHER }, { SKERRY_CORE_URL: 'http://x' }),
    choose({}, { SKERRY_CORE_URL: OTHER }, { networks: {} }),
  ])
    assert.equal(quiet.warning, undefined);
});

test('a variable that beats the local network is said where it matters, and not with every command', async () => {
  await using home = await createTestDir();
  // Nobody listens there; somebody may do at the usual port.
  await using _local = await noteLocal(join(home.path, 'data'), 'http://127.0.0.1:11');
  const core = 'http://127.0.0.1:9';
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core };
  const skerry = (...args: string[]) => skerryHere(environment, args);
  const said = `SKERRY_CORE_URL (${core}) is used instead of the network local`;
  assert.equal((await skerry('network', 'list')).err, `${said}\n`);
  assert.equal((await skerry('network', 'list', '--json')).err, '');
  assert.ok((await skerry('status')).err.endsWith(`${said}\n`));
  assert.equal(
    (await skerry('network', 'use', 'local')).err,
    `but not those of this shell, which work on ${core}: unset SKERRY_CORE_URL to change that\n`,
  );
  assert.equal((await skerry('key', 'list')).err.includes(said), false);
  const { hint } = JSON.parse((await skerry('message', 'list', '--json')).err) as { hint: string };
  assert.ok(hint.startsWith(said), hint);
  // The core node of "local" is not what a variable of another service names.
  const { SKERRY_CORE_URL: _, ...rest } = environment;
  const other = { ...rest, SKERRY_SCHEDULER_URL: 'http://127.0.0.1:9' };
  const silent = JSON.parse((await skerryHere(other, ['message', 'list', '--json'])).err) as { hint: string };
  assert.match(silent.hint, /^is the network running\?/);
  // Who names it now knows it.
  assert.match((await skerry('message', 'list', '--core', core)).err, /\nhint: is the network running\?/);
});

test('who lists networks learns which of them commands of this shell work on', async () => {
  await using home = await createTestDir();
  const core = 'http://127.0.0.1:9';
  await saveNetworks(
    { config: join(home.path, 'config') },
    { current: 'prod', networks: { prod: { core: PROD }, other: { core: OTHER } } },
  );
  const list = async (variables: object, ...args: string[]) => {
    const environment = { SKERRY_HOME: home.path, HOME: home.path, ...variables };
    const { err } = await skerryHere(environment, ['network', 'list', ...args]);
    const { out } = await skerryHere(environment, ['network', 'list', '--json', ...args]);
    const all = JSON.parse(out) as { name: string; current: boolean; used: boolean }[];
    const namesOf = (key: 'current' | 'used') => all.filter((one) => one[key]).map(({ name }) => name);
    return [namesOf('current'), namesOf('used'), err];
  };
  const by = (variable: string) => `${variable} is used instead of the network prod\n`;
  assert.deepEqual(await list({}), [['prod'], ['prod'], '']);
  assert.deepEqual(await list({ SKERRY_NETWORK: 'other' }), [
    ...[['prod'], ['other']],
    by('SKERRY_NETWORK (other)'),
  ]);
  assert.deepEqual(await list({ SKERRY_NETWORK: 'prod' }), [['prod'], ['prod'], '']);
  // Whoever names it now knows it.
  assert.deepEqual(await list({ SKERRY_NETWORK: 'other' }, '--network', 'other'), [['prod'], ['other'], '']);
  assert.deepEqual(await list({ SKERRY_CORE_URL: core }), [
    ...[['prod'], []],
    by(`SKERRY_CORE_URL (${core})`),
  ]);
  assert.deepEqual(await list({ SKERRY_CORE_URL: core }, '--network', 'local'), [['prod'], ['local'], '']);
});

test("a service is never one of another network's", () => {
  const elsewhere = { network: { core: PROD }, given: {} };
  assert.equal(findService(elsewhere, 'scheduler', {}), undefined);
  assert.equal(findService(elsewhere, 'scheduler', undefined), undefined);
  assert.equal(findService(elsewhere, 'scheduler', { scheduler: 'http://127.0.0.1:4030' }), undefined);
  assert.equal(
    findService({ network: { core: 'http://127.0.0.1:5024' }, given: {} }, 'scheduler', {}),
    undefined,
  );
  // What is nearer wins: said now, said when the network was added, said by its core node.
  const told = { credit: 'https://told.example/' };
  const { network } = choose({});
  assert.deepEqual(findService({ network, given: { credit: 'http://x' } }, 'credit', told), {
    url: 'http://x',
    from: 'given',
  });
  assert.equal(findService({ network, given: {} }, 'credit', told)?.url, 'https://credit.example.org');
  assert.deepEqual(findService(elsewhere, 'credit', told), { url: 'https://told.example', from: 'core' });
  assert.deepEqual(findService({ network: getNetwork(NETWORKS, 'local'), given: {} }, 'gateway', undefined), {
    url: 'http://127.0.0.1:8081',
    from: 'usual',
  });
});

test('an option that names the network beats the variables of services of another one', () => {
  const environment = { SKERRY_GATEWAY_URL: 'http://127.0.0.1:8081' };
  assert.deepEqual(choose({ core: OTHER }, environment).given, {});
  assert.deepEqual(choose({ network: 'other' }, environment).given, {});
  assert.deepEqual(choose({ core: OTHER, gateway: 'http://g' }, environment).given, { gateway: 'http://g' });
});

test('loopback is followed only from loopback', () => {
  for (const url of ['http://localhost:1', 'http://127.1.2.3', 'http://[::1]:1', 'http://a.localhost'])
    assert.deepEqual([isUsable(url, PROD), isUsable(url, 'http://127.0.0.1:4024')], [false, true], url);
  for (const url of ['file:///etc/passwd', 'nonsense', 'https://me:hush@core.example.net'])
    assert.ok(!isUsable(url, PROD));
});

test('who gives a known name to another network is told what had it', async () => {
  await using home = await createTestDir();
  await using core = await startNamesake(`0x${'1'.repeat(40)}`);
  const places = { config: join(home.path, 'config'), data: join(home.path, 'data') };
  await saveNetworks(places, NETWORKS);
  const add = (...args: string[]) =>
    skerryHere({ SKERRY_HOME: home.path, HOME: home.path }, ['network', 'add', ...args]);
  const said = `this replaces what was known as prod: core ${PROD}, credit https://credit.example.org, key work\n`;
  assert.equal((await add('prod', core.url)).err, said);
  assert.deepEqual((await loadNetworks(places)).networks.prod, { core: core.url });
  // The same again replaces nothing.
  assert.equal((await add('prod', core.url)).err, '');
  const replacedBy = async (...args: string[]) => JSON.parse((await add(...args, '--json')).out).replaced;
  assert.deepEqual(await replacedBy('other', core.url), { core: OTHER });
  assert.equal(await replacedBy('third', core.url), null);
});

test('who adds a network that does not answer is not told to start one here', async () => {
  await using home = await createTestDir();
  const { code, err } = await skerryHere({ SKERRY_HOME: home.path, HOME: home.path }, [
    ...['network', 'add', 'x', 'http://127.0.0.1:9'],
  ]);
  assert.equal(code, 5);
  assert.match(
    err,
    /\(UPSTREAM_UNAVAILABLE\)\nhint: nothing was added: give the URL of a core node that answers\n$/,
  );
});

test('networks are kept for their owner alone; a damaged file is said', async () => {
  await using dir = await createTestDir();
  assert.deepEqual(await loadNetworks({ config: dir.path, data: dir.path }), { networks: {} });
  await saveNetworks({ config: dir.path }, NETWORKS);
  assert.deepEqual(await loadNetworks({ config: dir.path, data: dir.path }), NETWORKS);
  const file = join(dir.path, 'networks.json');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  for (const text of ['{', '[]', '{"networks":{"x":{"core":"ftp://x"}}}']) {
    await writeFile(file, text);
    await assert.rejects(loadNetworks({ config: dir.path, data: dir.path }), {
      code: 'INVALID_CONFIG',
      message: /networks\.json/,
    });
  }
});

test('the local network is where the last that started says, for as long as it runs', async () => {
  await using dir = await createTestDir();
  const places = { config: dir.path, data: join(dir.path, 'data') };
  const coreOf = async () => getNetwork(await loadNetworks(places), 'local').core;
  assert.equal(await coreOf(), 'http://127.0.0.1:4024');
  const first = await noteLocal(places.data, 'http://localhost:5024');
  assert.equal(await coreOf(), 'http://localhost:5024');
  const second = await noteLocal(places.data, 'http://localhost:6024');
  await first[Symbol.asyncDispose]();
  assert.equal(await coreOf(), 'http://localhost:6024');
  await saveNetworks(places, await loadNetworks(places));
  await second[Symbol.asyncDispose]();
  assert.equal(await coreOf(), 'http://127.0.0.1:4024');
  await noteLocal(places.data, 'nonsense');
  assert.equal(await coreOf(), 'http://127.0.0.1:4024');
});

test('down means the network that runs, wherever its data are', async () => {
  await using home = await createTestDir();
  const data = join(home.path, 'data');
  const down = async () => {
    const { out, err } = await skerryHere({ SKERRY_HOME: home.path }, ['down', '--json']);
    assert.equal(err, '');
    return (JSON.parse(out) as { data_dir: string }).data_dir;
  };
  const elsewhere = join(home.path, 'elsewhere');
  {
    const place = { dataDir: elsewhere, urls: { core: 'http://127.0.0.1:5024' } };
    await using _running = await noteLocal(data, 'http://127.0.0.1:5024', place);
    assert.deepEqual(await readLocalPlace(data), place);
    assert.equal(await down(), elsewhere);
  }
  assert.equal(await down(), devnetIn(data));
});

test('down does not say that data are kept where no directory is', async () => {
  await using home = await createTestDir();
  const down = (dataDir: string) => skerryHere({ SKERRY_HOME: home.path }, ['down', '--data-dir', dataDir]);
  const none = join(home.path, 'misspelt');
  const { out, code } = await down(none);
  assert.deepEqual([out, code], [`no network was running\nthere is no directory ${none}\n`, 0]);
  assert.match((await down(home.path)).out, /^data and logs are kept in /m);
});

/** A process that holds the lock of a network, as "skerry up" does, until it is ended. */
async function standIn(dataDir: string) {
  await mkdir(dataDir, { recursive: true });
  const code = `const { acquireLock } = await import(${JSON.stringify(import.meta.resolve('@skerry/kit'))});
    const lock = await acquireLock(${JSON.stringify(join(dataDir, 'devnet.lock'))}, { waitMs: 0 });
    lock.write(process.pid + '\\n');
    console.log('held');
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await awaitOutput(child, 'the stand-in for a network', hear(child, ['stderr']));
  return {
    [Symbol.asyncDispose]: () => endProcess(child, 'SIGKILL'),
  };
}

test('down ends what runs, and not only what was noted last: one that was killed, one that starts, one at the usual place', async () => {
  await using home = await createTestDir();
  const data = join(home.path, 'data');
  const down = async () => {
    const { out, err } = await skerryHere({ SKERRY_HOME: home.path }, ['down', '--json']);
    assert.equal(err.trim().split('\n').length, 1, err);
    const { data_dir, was } = JSON.parse(out) as { data_dir: string; was: string };
    return [was, data_dir];
  };
  const [usual, killed, starting] = [devnetIn(data), join(home.path, 'killed'), join(home.path, 'starting')];
  await noteLocal(data, 'http://127.0.0.1:5024', { dataDir: killed, urls: {} });
  {
    await using _running = await standIn(usual);
    assert.deepEqual(await down(), ['running', usual]);
  }
  assert.deepEqual(await down(), ['stopped', killed]);
  assert.deepEqual(await readLocalPlace(data), { dataDir: usual, urls: {} });
  await noteBegun(data, starting);
  {
    await using _starting = await standIn(starting);
    // Another one at the usual place came and went.
    await using _later = await noteBegun(data, usual);
    const noted = await noteLocal(data, 'http://127.0.0.1:4024');
    await noted[Symbol.asyncDispose]();
    assert.deepEqual(await down(), ['running', starting]);
  }
  assert.deepEqual(await down(), ['stopped', usual]);
});

test('what shuts left machines down names the place of their network where it is not the usual one', () => {
  assert.equal(downMachinesAt('/d', devnetIn('/d')), 'skerry down --machines');
  const command = downMachinesAt('/d', '/elsewhere');
  assert.match(renderDown('running', [], ['a'], command), /"skerry down --machines --data-dir \/elsewhere"/);
  assert.match(renderFarewell(1, command), /"skerry down --machines --data-dir \/elsewhere"/);
  assert.equal(downMachinesAt('/d', '/my disk'), "skerry down --machines --data-dir '/my disk'");
});

test('who chooses a network is told which variables name services of another one', async () => {
  await using home = await createTestDir();
  const url = 'http://127.0.0.1:9';
  const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_SCHEDULER_URL: url };
  const use = async (name: string) => (await skerryHere(environment, ['network', 'use', name])).err;
  const saidOf = (name: string) => `SKERRY_SCHEDULER_URL (${url}) is used instead of the network ${name}\n`;
  assert.equal(await use('local'), saidOf('local'));
  await saveNetworks(
    { config: join(home.path, 'config') },
    { networks: { other: { core: 'http://127.0.0.1:8' } } },
  );
  assert.equal(await use('other'), saidOf('other'));
  assert.equal(await use('other'), saidOf('other'));
  assert.equal(await use('local'), saidOf('other') + saidOf('local'));
});

test('who asks for the local network learns which of its daemons were started again', async () => {
  await using dir = await createTestDir();
  const url = 'http://localhost:5024';
  const read = () => readRestarts(dir.path, url);
  {
    await using local = await noteLocal(dir.path, url);
    assert.deepEqual(await read(), {});
    await Promise.all([1, 2, 3].map((n) => local.noteRestart(n === 2 ? 'monitor' : 'gateway', n)));
    assert.deepEqual(await read(), { gateway: { count: 2, lastMs: 3 }, monitor: { count: 1, lastMs: 2 } });
    assert.deepEqual(await readRestarts(dir.path, 'http://localhost:6024'), {});
    // One that came later is the one that is meant.
    await using later = await noteLocal(dir.path, 'http://localhost:6024');
    await later.noteRestart('core', 4);
    await local.noteRestart('gateway', 5);
    assert.deepEqual(await readRestarts(dir.path, 'http://localhost:6024'), {
      core: { count: 1, lastMs: 4 },
    });
  }
  assert.deepEqual(await read(), {});
});
