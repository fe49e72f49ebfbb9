import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { call } from '@skerry/client';
import { findFreePort, takeDataDir } from '@skerry/kit';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { until } from '@skerry/kit/testing/until';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { NODE_DRAINING } from '@skerry/protocol/forms';
import { canHoldAddresses } from '../scheduler/testing/nodes.ts';
import { skerryHere } from '../testing/here.ts';
import { startPlacing } from '../testing/placing.ts';
import { SKERRY } from '../testing/shell.ts';

const PATIENCE = '300s';
/** As long as a daemon may take to end, too. */
const FORCED_AFTER = '15s';
const stack = new AsyncDisposableStack();
let dir: string;
let coreUrl: string;
let schedulerUrl: string;
let scheduler: string;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skerry-join-'));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const placing = stack.use(
    await startPlacing(dir, {
      core: {
        SKERRY_CORE_SCORING_PUBLISHERS: 'none',
        SKERRY_CORE_CREDIT_PUBLISHERS: 'none',
        SKERRY_CORE_ALLOW_PRIVATE: 'yes',
      },
      scheduler: { SKERRY_SCHEDULER_TRUST: 'all', SKERRY_SCHEDULER_ALLOW_PRIVATE: 'yes' },
    }),
  );
  ({ scheduler, coreUrl, schedulerUrl } = placing);
});
after(() => stack.disposeAsync());

const environmentOf = (home: string, environment: Readonly<Record<string, string>>) => ({
  ...bareEnvironment(),
  HOME: home,
  SKERRY_HOME: home,
  SKERRY_LOG_LEVEL: 'error',
  ...environment,
});

/** `skerry ARGS` in a home of its own. */
function start(home: string, environment: Readonly<Record<string, string>>, ...args: string[]) {
  const env = environmentOf(home, environment);
  return spawn(process.execPath, [SKERRY, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

const run = (home: string, environment: Readonly<Record<string, string>>, ...args: string[]) =>
  skerryHere(environmentOf(home, environment), args);

/** A node that joins and stays; given what the command reported. */
async function joined(home: string, environment: Readonly<Record<string, string>>, ...args: string[]) {
  const child = start(
    home,
    environment,
    'join',
    coreUrl,
    ...args,
    '--yes',
    '--foreground',
    '--timeout',
    PATIENCE,
  );
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    complaint += part;
  });
  const lines: string[] = [];
  const ended = once(child, 'close').then((): never => assert.fail(`it ended:\n${complaint}`));
  const reported = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line === 'Next:') return lines.join('\n');
    }
    return ended;
  })();
  const report = await Promise.race([reported, ended]);
  return {
    report,
    complaint: () => complaint,
    async [Symbol.asyncDispose]() {
      ended.catch(() => {});
      if (child.exitCode !== null) return;
      const over = once(child, 'exit');
      child.kill('SIGTERM');
      await over;
    },
  };
}

/** `skerry leave` of a node that runs by hand, which ends when it asks for that. Gives what it reported. */
async function leave(
  home: string,
  environment: Readonly<Record<string, string>>,
  node: AsyncDisposable,
  ...args: string[]
): Promise<string> {
  const leaving = start(home, environment, 'leave', '--yes', '--timeout', PATIENCE, ...args);
  const told = text(leaving.stdout);
  for await (const line of createInterface({ input: leaving.stderr }))
    if (line.startsWith('Now end it')) await node[Symbol.asyncDispose]();
  return told;
}

async function leaveGateway(
  home: string,
  environment: Readonly<Record<string, string>>,
  gateway: AsyncDisposable,
): Promise<void> {
  const args = ['--role', 'gateway'];
  const early = await run(home, environment, 'leave', ...args, '--yes', '--timeout', PATIENCE);
  assert.equal(early.code, 1);
  assert.match(early.err, /\*\.apps\.localhost still leads to this server.*--force/s);
  const moved = { ...environment, SKERRY_GATEWAY_DOMAIN: 'apps.invalid' };
  const visitor = connect(Number(environment.SKERRY_GATEWAY_HTTP_PORT), '127.0.0.1');
  visitor.write('GET / HTTP/1.1\r\nHost: nobody.apps.localhost\r\n\r\n');
  const [page] = (await once(visitor, 'data')) as [Buffer];
  assert.match(String(page), /^HTTP\/1\.1 404 /);
  const busy = await run(home, moved, 'leave', ...args, '--yes', '--timeout', '1s');
  assert.equal(busy.code, 5);
  assert.match(busy.err, /not within 1 s that all connections have ended: 1 are open/);
  assert.equal(visitor.closed, false, 'it serves on');
  visitor.destroy();
  const left = await leave(home, moved, gateway, ...args);
  assert.match(left, /^This gateway node has left the network\.\nStill on disk: /);
}

describe('a server joins a network with one command', () => {
  test('a compute node, which the scheduler then uses; when it leaves, it is emptied and forgotten', {
    skip: canHoldAddresses ? false : 'needs root on Linux',
  }, async () => {
    const home = join(dir, 'compute');
    const port = String(await findFreePort());
    const environment = {
      SKERRY_COMPUTE_PORT: port,
      SKERRY_COMPUTE_PROGRAMS: 'no',
      SKERRY_COMPUTE_CPU: '2',
    };
    const url = `http://127.0.0.1:${port}`;
    const place = ['--announce-url', url, '--scheduler', schedulerUrl];
    const file = join(home, 'config', 'compute.env');
    await using held = new AsyncDisposableStack();
    const node = held.use(await joined(home, environment, '--role', 'compute', ...place));
    assert.match(node.report, /the scheduler gives it instances: \d+ cores/);
    assert.match(
      node.complaint(),
      /the core node on this server reaches http:\/\/127\.0\.0\.1:\d+; nobody else was asked/,
    );
    assert.match(
      await readFile(file, 'utf8'),
      new RegExp(`^SKERRY_COMPUTE_CORE_URL=${coreUrl}\nSKERRY_COMPUTE_ANNOUNCE_URL=${url}\n`, 'm'),
    );

    const leaveCompute = () =>
      start(home, environment, 'leave', '--role', 'compute', '--scheduler', schedulerUrl, '--yes');
    const interrupted = leaveCompute();
    held.defer(() => void interrupted.kill('SIGKILL'));
    let daemon: ReturnType<typeof start> | undefined;
    held.defer(() => void daemon?.kill('SIGKILL'));
    for await (const line of createInterface({ input: interrupted.stderr })) {
      if (!line.startsWith('Start the node again')) continue;
      interrupted.kill('SIGINT');
      await node[Symbol.asyncDispose]();
      daemon = start(home, environment, 'compute', '--settings', file);
      daemon.stdout.resume();
    }
    const reasonOf = () =>
      call(url, NODE_API.getNodeConfig, {}).then(
        ({ reason }) => reason?.code,
        () => undefined,
      );
    await until('it says that it leaves', reasonOf, (code) => code === NODE_DRAINING);
    const leaving = leaveCompute();
    const told = text(leaving.stdout);
    for await (const line of createInterface({ input: leaving.stderr })) {
      assert.doesNotMatch(line, /^Start the node again/, 'it was');
      if (line.startsWith('Now end it')) daemon?.kill('SIGTERM');
    }
    const left = await told;
    assert.match(left, /^This compute node has left the network\.\nAnnouncements taken back: \d+\./);
    assert.ok(left.includes(`Still on disk: ${join(home, 'data', 'compute')} (rm -r `), left);
    // It hears of what was taken back as everybody does, a moment later.
    const listed = async () => (await call(schedulerUrl, SCHEDULER_API.listNodes, {})).nodes;
    await until('the scheduler has forgotten it', listed, ({ length }) => length === 0);
  });

  test('a core node, which is synced with the same digest and trusts whom the network trusts; it leaves when its peers have what it has', async () => {
    const home = join(dir, 'second');
    const environment = {
      SKERRY_CORE_PORT: String(await findFreePort()),
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
    };
    await using node = await joined(home, environment, '--role', 'core');
    assert.match(node.report, /This core node has joined: synced,? with /);
    assert.match(node.complaint(), /This network says.*whom to trust:\n {2}schedulers: 0x/);
    const file = await readFile(join(home, 'config', 'core.env'), 'utf8');
    assert.equal(
      file,
      [
        // What the environment says is written, too.
        ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
        `SKERRY_CORE_PEERS=${coreUrl}`,
        `SKERRY_CORE_SCHEDULERS=${scheduler}`,
        'SKERRY_CORE_SCORING_PUBLISHERS=none',
        'SKERRY_CORE_CREDIT_PUBLISHERS=none\n',
      ].join('\n'),
    );
    const left = await leave(home, environment, node, '--role', 'core');
    assert.match(left, /^This core node has left the network\.\nRemove its URL from .* SKERRY_CORE_PEERS\./);
    assert.ok(left.includes(`Still on disk: ${join(home, 'data', 'core')} (rm -r `), left);
    assert.equal((await call(coreUrl, SYNC_API.getSyncStatus, {})).state, 'alone', 'the other stays');
  });

  test('a core node whose peers have gone does not leave, and serves on; with --force it leaves all the same', async () => {
    const home = join(dir, 'apart');
    const environment = {
      SKERRY_CORE_PORT: String(await findFreePort()),
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_PEERS: `http://127.0.0.1:${await findFreePort()}`,
      SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
    };
    const child = start(home, environment, 'core');
    child.stdout.resume();
    child.stderr.resume();
    const node: AsyncDisposable = {
      async [Symbol.asyncDispose]() {
        if (child.exitCode !== null) return;
        const over = once(child, 'exit');
        child.kill('SIGTERM');
        await over;
      },
    };
    await using _node = node;
    const url = `http://127.0.0.1:${environment.SKERRY_CORE_PORT}`;
    const stateOf = () =>
      call(url, SYNC_API.getSyncStatus, {}).then(
        ({ state }) => state,
        () => undefined,
      );
    await until('it notices', stateOf, (state) => state === 'apart');
    const refused = await run(home, environment, 'leave', '--role', 'core', '--yes', '--timeout', '1s');
    assert.equal(refused.code, 5);
    assert.match(refused.err, /not within 1 s that the peers have what this node has: apart, 1 peers/);
    assert.equal(await stateOf(), 'apart', 'it serves on');
    const left = await leave(home, environment, node, '--role', 'core', '--force', '--timeout', FORCED_AFTER);
    assert.match(left, /^This core node has left the network\./);
    assert.equal(await stateOf(), undefined, 'it has ended');
  });

  test('a core node that is alone with its messages does not leave', async () => {
    const port = new URL(coreUrl).port;
    const dataDir = join(dir, 'only', 'core');
    await mkdir(dataDir, { recursive: true });
    // It runs in this process, where no service has taken its directory.
    using _working = await takeDataDir(dataDir);
    const environment = {
      ...{ SKERRY_CORE_PORT: port, SKERRY_CORE_HOST: '127.0.0.1' },
      SKERRY_CORE_DATA_DIR: dataDir,
    };
    const refused = await run(join(dir, 'only'), environment, 'leave', '--role', 'core', '--yes');
    assert.equal(refused.code, 1);
    assert.match(refused.err, /this node has no peers, so nobody may have a copy of its \d+ messages/);
    assert.equal((await call(coreUrl, SYNC_API.getSyncStatus, {})).state, 'alone', 'it serves on');
  });

  test('a gateway, which answers names; it leaves when no visitor is sent to it and none is left', async () => {
    const ports = { SKERRY_GATEWAY_HTTP_PORT: 0, SKERRY_GATEWAY_HTTPS_PORT: 0, SKERRY_GATEWAY_API_PORT: 0 };
    const environment: Record<string, string> = {
      SKERRY_GATEWAY_HOST: '127.0.0.1',
      SKERRY_GATEWAY_DATA_PLANE: 'typescript',
    };
    for (const name of Object.keys(ports)) environment[name] = String(await findFreePort());
    const home = join(dir, 'gateway');
    await using gateway = await joined(
      home,
      environment,
      '--role',
      'gateway',
      '--domain',
      'apps.localhost',
      '--force',
    );
    assert.match(gateway.report, /names below apps\.localhost are answered/);
    await leaveGateway(home, environment, gateway);
  });

  test('a monitor, whose messages are accepted', async () => {
    await using monitor = await joined(
      join(dir, 'monitor'),
      { SKERRY_MONITOR_ALLOW_PRIVATE: 'yes' },
      '--role',
      'monitor',
      '--force',
    );
    assert.match(monitor.report, /the network accepts what 0x[0-9a-f]{40} publishes/i);
  });

  test('what is missing is said in a sentence with the command that mends it, and nothing is written', async () => {
    const home = join(dir, 'refused');
    const elsewhere = 'http://core.invalid';
    const compute = await run(home, {}, 'join', elsewhere, '--role', 'compute', '--yes');
    assert.equal(compute.code, 1);
    assert.match(
      compute.err,
      /✗ this node would announce http:\/\/localhost:4020, where others find only themselves.*\n.*--announce-url/,
    );
    assert.match(compute.err, /✗ the core node http:\/\/core\.invalid does not answer/);
    const taken = new URL(coreUrl).port;
    const core = await run(
      home,
      { SKERRY_CORE_PORT: taken, SKERRY_CORE_HOST: '127.0.0.1' },
      'join',
      coreUrl,
      '--role',
      'monitor',
      '--dry-run',
      '--json',
    );
    assert.equal(core.code, 0, core.err);
    const gateway = await run(
      home,
      {},
      'join',
      coreUrl,
      '--role',
      'gateway',
      '--domain',
      'apps.invalid',
      '--yes',
    );
    assert.equal(gateway.code, 1);
    assert.match(
      gateway.err,
      /✗ \*\.apps\.invalid has no address in the DNS\n +Add the record: \*\.apps\.invalid\. A/,
    );
    const silent = await run(home, {}, 'join', coreUrl, '--role', 'monitor');
    assert.match(silent.err, /CONFIRMATION_REQUIRED.*\n.*--yes/);
    await assert.rejects(readFile(join(home, 'config', 'monitor.env')));
  });

  test('a node that would announce loopback to a network elsewhere does not start', async () => {
    const environment = { SKERRY_COMPUTE_CORE_URL: 'http://core.invalid', SKERRY_COMPUTE_PORT: '0' };
    const child = start(join(dir, 'alone'), environment, 'compute');
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(code, 2);
    assert.match(out, /SKERRY_COMPUTE_ANNOUNCE_URL/);
  });
});
