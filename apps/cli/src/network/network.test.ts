import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { withoutCommandVariables } from '../config.ts';
import { createOutput } from '../output/output.ts';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { describeAbility, describeCredit } from './ability.ts';
import { findConsoleUrl } from './console-url.ts';
import { renderDown } from './down.ts';
import { hostAddresses } from './gateway.ts';
import { describeCore, describeGateway, describeGuess } from './status.ts';
import { createTerminal, isWorthShowing } from './terminal.ts';
import { renderFarewell, renderWelcome, welcomeRecord } from './welcome.ts';

const URLS = {
  core: 'http://localhost:4024',
  scheduler: 'http://localhost:4030',
  compute: 'http://localhost:4020',
  credit: 'http://localhost:4032',
  gatewayHttp: 'http://localhost:8080',
  gatewayHttps: 'https://localhost:8443',
  gatewayApi: 'http://localhost:8081',
};
const FACTS = {
  urls: URLS,
  consoleUrl: 'http://localhost:4024/',
  command: 'npx skerry',
  coreUrls: [],
  failures: new Map(),
  dataDir: '/data',
  ability: { machines: true, programs: true, text: 'virtual machines' },
  credit: 'charges',
};
const plain = (text: string) => text;

test('the welcome names every door and the commands to try', () => {
  const text = renderWelcome(FACTS, plain);
  for (const url of [URLS.core, URLS.scheduler, URLS.compute, URLS.credit, URLS.gatewayApi])
    assert.ok(text.includes(url), url);
  assert.match(text, /^ {2}npx skerry key new$/m);
  assert.match(text, /https:\/\/NAME\.skerry\.localhost:8443\//);
  assert.ok(!text.includes('export '));
});

test('scores come after an hour, however long that is here', () => {
  assert.match(
    renderWelcome(FACTS, plain),
    /score latest +\(after an hour, or within a minute with "skerry up --hour 20s"\)/,
  );
  assert.match(
    renderWelcome({ ...FACTS, hourMs: 60_000 }, plain),
    /score latest +\(after an hour, which is 1 min here\)/,
  );
});

test('the console is what is told first', () => {
  const [first] = renderWelcome(FACTS, plain).split('\n').slice(2);
  assert.match(first!, /^ {2}console +http:\/\/localhost:4024\/ /);
  assert.equal(welcomeRecord(FACTS).console, 'http://localhost:4024/');
});

test('the console is told by a name, for passkeys, unless somebody else has its port under that name', async (t) => {
  const other = createServer();
  try {
    await once(other.listen(0, '::1'), 'listening');
  } catch {
    return t.skip('this machine has no IPv6');
  }
  const { port } = other.address() as AddressInfo;
  try {
    assert.equal(await findConsoleUrl(`http://127.0.0.1:${port}`), `http://127.0.0.1:${port}/`);
  } finally {
    other.close();
    await once(other, 'close');
  }
  assert.equal(await findConsoleUrl(`http://127.0.0.1:${port}`), `http://localhost:${port}/`);
  assert.equal(await findConsoleUrl('http://192.0.2.1:4024'), 'http://192.0.2.1:4024/');
});

test('whoever has the command on the path reads it so', () => {
  const text = renderWelcome({ ...FACTS, command: 'skerry' }, plain);
  assert.match(text, /^ {2}skerry key new$/m);
  assert.ok(!text.includes('npx'));
});

test('what does not run is said', () => {
  const urls = { core: URLS.core, scheduler: URLS.scheduler, compute: URLS.compute };
  const failures = new Map([
    ['gateway', new AppError('DAEMON_FAILED', 'gateway cannot be started')],
  ] as const);
  const text = renderWelcome({ ...FACTS, urls, failures }, plain);
  assert.match(text, /some services are not/);
  assert.match(text, /gateway +not running +gateway cannot be started/);
});

test('nobody is sent to what cannot work here', () => {
  const textOf = (machines: boolean, programs: boolean) =>
    renderWelcome(
      { ...FACTS, ability: { machines, programs, text: 'no virtual machines: not root' } },
      plain,
    );
  assert.match(textOf(true, true), /instance create/);
  assert.doesNotMatch(textOf(false, true), /instance (create|ssh)|curl/);
  assert.match(textOf(false, true), /program create hello\.py/);
  assert.doesNotMatch(textOf(false, false), /instance (create|ssh)|program (create|run)/);
  assert.match(textOf(false, false), /no virtual machines: not root/);
});

test('the farewell says what goes on', () => {
  assert.equal(renderFarewell(0), 'stopped');
  assert.match(renderFarewell(1), /1 virtual machine keeps running/);
  assert.match(renderFarewell(3), /3 virtual machines keep running/);
});

test('what a compute node can do, in one line', () => {
  assert.equal(
    describeAbility({ computing: {}, reason: { code: 'NO_QEMU', message: 'QEMU is not installed' } }),
    'no virtual machines: QEMU is not installed',
  );
  assert.equal(
    describeAbility({
      computing: {},
      reason: { code: 'HOST_NOT_READY', message: 'not root' },
      programs: { runtimes: [], reason: 'creating sandboxes requires root' },
    }),
    'no virtual machines: not root; no programs: creating sandboxes requires root',
  );
  assert.match(describeAbility({ computing: { ACCELERATOR: 'kvm' } }), /hardware/);
  assert.match(
    describeAbility({ computing: { ACCELERATOR: 'tcg', ACCELERATOR_REASON: 'no /dev/kvm' } }),
    /slow \(no \/dev\/kvm\)/,
  );
  assert.match(describeAbility({ computing: { ACCELERATOR: null } }), /tested when the first one starts/);
  assert.equal(describeAbility({ computing: {} }), 'capabilities unknown');
});

test('addresses by name, as far as the gateway is known', () => {
  const status = { domain: 'skerry.localhost', instance_count: 0, route_count: 0 };
  assert.deepEqual(hostAddresses('a-b-c-d', undefined), { hostname: 'a-b-c-d' });
  assert.deepEqual(hostAddresses('a-b-c-d', { ...status, http_port: 8080, https_port: 443 }), {
    hostname: 'a-b-c-d.skerry.localhost',
    https_url: 'https://a-b-c-d.skerry.localhost/',
    http_url: 'http://a-b-c-d.skerry.localhost:8080/',
  });
});

test('repetitions are not told twice; warnings always are', () => {
  const line = (level: number, msg: string) => JSON.stringify({ level, msg });
  assert.ok(!isWorthShowing('', 'verbose'));
  assert.ok(!isWorthShowing(line(30, 'Server listening at http://127.0.0.1:1'), 'verbose'));
  assert.ok(!isWorthShowing(line(30, 'core is ready'), 'usual'));
  assert.ok(isWorthShowing(line(30, 'the instance is running'), 'usual'));
  assert.ok(!isWorthShowing(line(30, 'the instance is running'), 'quiet'));
  assert.ok(isWorthShowing(line(40, 'core is ready'), 'quiet'));
  assert.ok(isWorthShowing('a stack trace', 'quiet'));
});

test('what a network does again and again is shown only where all is asked for', () => {
  for (const msg of ['packed messages into archives', 'announced a credit state']) {
    const line = JSON.stringify({ level: 30, msg });
    assert.deepEqual(
      (['quiet', 'usual', 'verbose'] as const).map((detail) => isWorthShowing(line, detail)),
      [false, false, true],
    );
    assert.ok(isWorthShowing(JSON.stringify({ level: 40, msg }), 'quiet'));
  }
});

test('with --json every line of "up" is JSON', () => {
  const lines: string[] = [];
  const write = (text: string) => lines.push(text) > 0;
  const stream = { write } as unknown as NodeJS.WriteStream;
  const terminal = createTerminal(createOutput(stream, stream, { json: true, colours: false }), 'usual');
  terminal.say('starting');
  terminal.line('core', JSON.stringify({ level: 30, msg: 'hello', name: 'x' }));
  terminal.line('core', 'at somewhere');
  terminal.event('core', { kind: 'ready', urls: [URLS.core], afterMs: 2_000 });
  terminal.event('core', { kind: 'given-up', why: 'a setting is wrong' });
  assert.ok(lines.every((line) => line.indexOf('\n') === line.length - 1));
  const records = lines.map((line) => JSON.parse(line) as { name: string; msg: string });
  assert.deepEqual(
    records.map(({ name, msg }) => [name, msg]),
    [
      ['skerry', 'starting'],
      ['core', 'hello'],
      ['core', 'at somewhere'],
      ['skerry', 'core is ready after 2 s http://localhost:4024'],
      ['skerry', 'core will not be restarted: a setting is wrong'],
    ],
  );
});

test('why a daemon is given up is told once; of a core node that never served, the command tells it', () => {
  const lines: string[] = [];
  const stream = { write: (text: string) => lines.push(text) > 0 } as unknown as NodeJS.WriteStream;
  const terminal = createTerminal(createOutput(stream, stream, { json: false, colours: false }), 'usual');
  for (const name of ['core', 'compute'] as const) {
    terminal.line(name, 'error: SKERRY_A: too much');
    terminal.line(name, 'SKERRY_B: too little (INVALID_CONFIG)');
    terminal.event(name, { kind: 'given-up', why: 'SKERRY_A: too much' });
  }
  terminal.line('gateway', 'error: no room (NO_CAPACITY)');
  terminal.event('gateway', { kind: 'ended', code: 1, signal: null, restartAfterMs: 1 });
  assert.equal(lines.length, 3);
  assert.match(lines[0]!, /compute will not be restarted: SKERRY_A: too much/);
  assert.match(lines[1]!, /gateway +error: no room/);
});

test("the command's own variables are not shown to daemons, which would refuse them", () => {
  const environment = { SKERRY_CORE_URL: 'x', SKERRY_KEY: 'x', SKERRY_CORE_PORT: '1', PATH: '/bin' };
  assert.deepEqual(withoutCommandVariables(environment), { SKERRY_CORE_PORT: '1', PATH: '/bin' });
});

test('a core node that answers and is not well says so in its line', () => {
  const ok = { status: 'ok' } as const;
  const health = {
    ...{ ...ok, version: '1.2.3' },
    checks: {
      ...{ database: ok, trust: ok },
      disk: { ...ok, free_bytes: 1, reserve_bytes: 1, takes_writes: true },
      pipeline: { ...ok, queued: 0 },
      peers: { ...ok, state: 'synced' },
      clock: { ...ok, offset_ms: 0 },
    },
  } as const;
  assert.deepEqual(describeCore(health), { state: 'up', detail: 'version 1.2.3' });
  const full = { ...health.checks.disk, status: 'unavailable', reason: 'the disk is full' } as const;
  const pipeline = { ...health.checks.pipeline, status: 'degraded' } as const;
  const sick = {
    ...health,
    status: 'unavailable',
    checks: { ...health.checks, disk: full, pipeline },
  } as const;
  const detail = 'version 1.2.3; disk: the disk is full; pipeline: degraded';
  assert.deepEqual(describeCore(sick), { state: 'unavailable', detail });
  return statusOf(sick).then(({ code, rows }) => {
    const core = rows.find(({ service }) => service === 'core');
    assert.deepEqual([code, core?.state, core?.answers], [5, 'unavailable', true]);
  });
});

interface Row {
  readonly service: string;
  readonly state: string;
  readonly answers: boolean;
  readonly detail: string;
}

/** What `skerry status` says of a core node that is as it says itself; of none, where nothing listens at its port. */
async function statusOf(health?: object): Promise<{ code: number; rows: readonly Row[] }> {
  const node = await replying((url, response) => {
    if (url.pathname !== '/api/v0/health') return undefined;
    response.statusCode = 503;
    return health;
  });
  if (health === undefined) await node[Symbol.asyncDispose]();
  const { out, code } = await skerryHere({}, ['status', '--core', node.url, '--json']);
  if (health !== undefined) await node[Symbol.asyncDispose]();
  return { code, rows: (JSON.parse(out) as { services: Row[] }).services };
}

test('where the core node is away nobody knows where the others are, and nobody says that there are none', async () => {
  const { code, rows } = await statusOf();
  assert.equal(code, 5);
  for (const { service, state, detail } of rows) {
    assert.equal(state, service === 'core' ? 'down' : 'unknown', service);
    assert.match(detail, /does not answer/, service);
  }
});

test('a compute node that nobody named, and that does not answer at the usual place, is not known: a network may have none', () => {
  const url = 'http://127.0.0.1:4020';
  const asked = { service: 'compute', url, answers: false, elapsed_ms: null, detail: 'x' } as const;
  const { state, detail } = describeGuess({ ...asked, state: 'down' });
  assert.equal(state, 'unknown');
  assert.equal(detail, `nobody says that there is one, and none answers at ${url}`);
  const up = { ...asked, state: 'up', answers: true, elapsed_ms: 3 } as const;
  assert.equal(describeGuess(up), up);
});

test('a credit service that charges nothing says so in its line; that it sells nothing is no fault', async () => {
  const nothingSold = 'no chain is configured: nothing can be bought (SKERRY_CREDIT_SALES_FILE)';
  const untrusted =
    'the core node does not trust this service, which charges and announces nothing until it does';
  let reasons: readonly string[] = [nothingSold];
  await using credit = await replying((url) =>
    url.pathname === '/status'
      ? {
          ...{ status: 'degraded', reasons, address: `0x${'1'.repeat(40)}`, enforcement: false, sales: [] },
          purchases: { total: 0, waiting: 0 },
        }
      : undefined,
  );
  const ask = async () => {
    const { out } = await skerryHere({}, [
      ...['status', '--core', credit.url, '--credit', credit.url, '--json'],
    ]);
    return (JSON.parse(out) as { services: Row[] }).services.find(({ service }) => service === 'credit')!;
  };
  const healthy = await ask();
  assert.equal(healthy.state, 'up');
  assert.ok(!healthy.detail.includes('SKERRY_CREDIT_SALES_FILE'), healthy.detail);
  reasons = [nothingSold, untrusted];
  const sick = await ask();
  assert.equal(sick.state, 'degraded');
  assert.ok(sick.detail.endsWith(untrusted), sick.detail);
});

/** The row of a service that answers this at `/status`. */
async function rowOf(service: 'scheduler' | 'status', said: object): Promise<Pick<Row, 'state' | 'detail'>> {
  await using node = await replying(({ pathname }) => (pathname === '/status' ? said : undefined));
  const asked = ['status', '--core', node.url, `--${service}`, node.url, '--json'];
  const { out } = await skerryHere({}, asked);
  const { services } = JSON.parse(out) as { services: Row[] };
  const { state, detail } = services.find((row) => row.service === service)!;
  return { state, detail };
}

test('a scheduler and a status service that say that something is wrong are degraded, not up', async () => {
  const scheduler = {
    address: `0x${'1'.repeat(40)}`,
    leadership: { role: 'leader', since_ms: 0, can_lead: true, peers: [] },
    nodes: { total: 1, healthy: 0 },
    instances: { total: 2, placed: 1, waiting: 1, leaving: 0 },
  };
  const status = { services: { total: 4, online: 3 } };
  const ok = { status: 'ok', reasons: [] };
  const summary = '1 node, 1 of 2 instances placed';
  assert.deepEqual(await rowOf('scheduler', { ...scheduler, ...ok }), { state: 'up', detail: summary });
  assert.deepEqual(await rowOf('status', { ...status, ...ok }), {
    state: 'up',
    detail: '3 of 4 services up',
  });
  const why = 'cannot read the core node: http://core.example does not answer';
  const ill = { status: 'degraded', reasons: [why] };
  const wrong = await rowOf('scheduler', { ...scheduler, ...ill });
  assert.deepEqual(wrong, { state: 'degraded', detail: `${summary}; ${why}` });
  const blind = await rowOf('status', { ...status, ...ill });
  assert.deepEqual(blind, { state: 'degraded', detail: `3 of 4 services up; ${why}` });
});

test('a gateway that has heard nothing from its core node for long is not said to be well', () => {
  const now = 1_800_000_000;
  const said = { instance_count: 3, route_count: 1, domain: 'skerry.localhost' };
  const detail = '1 route of 3 instances, skerry.localhost';
  const heardAt = (last_sync_time: number) => describeGateway({ ...said, last_sync_time }, now);
  assert.deepEqual(heardAt(now - 301), { state: 'up', detail });
  const unheard = `${detail}; it has heard nothing from its core node`;
  const late = heardAt(now - 7_200);
  assert.equal(late.state, 'degraded');
  assert.ok(late.detail.startsWith(`${unheard} since 20`), late.detail);
  assert.deepEqual(heardAt(0), { state: 'degraded', detail: `${unheard} yet` });
});

test('how long a gateway heard nothing is told by its own clock', async () => {
  const toldMs = Date.parse('2020-01-01T00:00:00Z');
  let heardMs = toldMs - 10_000;
  await using gateway = await replying((url, response) => {
    if (url.pathname !== '/api/status') return undefined;
    response.setHeader('date', new Date(toldMs).toUTCString());
    return { instance_count: 1, route_count: 1, last_sync_time: heardMs / 1000, domain: 'a.example' };
  });
  const ask = async () => {
    const asked = ['status', '--core', gateway.url, '--gateway', gateway.url, '--json'];
    const { out } = await skerryHere({}, asked);
    return (JSON.parse(out) as { services: Row[] }).services.find(({ service }) => service === 'gateway')!;
  };
  const fresh = await ask();
  assert.equal(fresh.state, 'up', fresh.detail);
  heardMs = toldMs - 3_600_000;
  assert.equal((await ask()).state, 'degraded');
});

test('what a credit service sells, in one line', () => {
  assert.match(
    describeCredit({ sales: [], enforcement: false }),
    /no chain is configured, so nothing can be bought; nothing is stopped/,
  );
  const sales = [
    { token: 'USDC', network: 'ethereum', chain: 'ETH', contract: `0x${'1'.repeat(40)}`, receiver: '' },
  ];
  assert.match(
    describeCredit({ sales, enforcement: true }),
    /sells credits for USDC on ethereum; instances without credit/,
  );
});

test('the end of a network says what still runs, and what ends it', () => {
  assert.equal(renderDown('stopped', [], []), 'no network was running');
  assert.match(
    renderDown('running', [], ['a']),
    /stopped; 1 virtual machine still running: "skerry down --machines" shuts it down/,
  );
  const off = { instance_id: 'a', state: 'off' } as const;
  const cut = { instance_id: 'b', state: 'cut' } as const;
  assert.match(
    renderDown('ending', [off, cut], []),
    /2 virtual machines powered off.*the power of 1 was cut/,
  );
});
