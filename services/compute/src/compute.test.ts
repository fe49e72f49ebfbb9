import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { OwnerPass } from '@skerry/client';
import { checkOperation, listUnanswered, overHttp } from '@skerry/kit/testing';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { LIMITS } from '@skerry/protocol';
import { ALLOCATIONS_API } from '@skerry/protocol/api/compute/allocations';
import { CONSOLE_API, MACHINES_API } from '@skerry/protocol/api/compute/machines';
import { NODE_API, PROOF_API } from '@skerry/protocol/api/compute/node';
import { PROGRAMS_API } from '@skerry/protocol/api/compute/programs';
import { COMPUTE_EXAMPLES } from '@skerry/protocol/api/examples/compute';
import { REFERENCE_API } from '@skerry/protocol/api/reference';
import { RealCore } from './testing/real-core.ts';
import { until } from './testing/wait.ts';

/** Only what hangs takes as long. */
const SOON_MS = 100_000;
const NOBODY = 65_534;

/** Starts the service as an ordinary user: directly, or from root by becoming nobody. */
function startAsOrdinaryUser(environment: Record<string, string>): ChildProcess {
  const isRoot = process.geteuid?.() === 0;
  return spawn(process.execPath, [join(import.meta.dirname, 'testing/main.ts')], {
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
}

/** What is answered to a body of which only the length is said. */
async function sayHowLong(url: string, bytes: number): Promise<number> {
  const headers = { 'content-type': 'application/json', 'content-length': bytes };
  const asked = request(url, { method: 'POST', headers });
  asked.on('error', () => {}).flushHeaders();
  const [{ statusCode }] = (await once(asked, 'response', { signal: AbortSignal.timeout(SOON_MS) })) as [
    { statusCode: number },
  ];
  asked.destroy();
  return statusCode;
}

test('where virtual machines cannot run the node still serves, says why, and refuses what it is given', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-compute-'));
  await chmod(directory, 0o777);
  await using core = await new RealCore().start();
  const node = startAsOrdinaryUser({
    SKERRY_COMPUTE_CORE_URL: core.url,
    SKERRY_COMPUTE_DATA_DIR: join(directory, 'data'),
    SKERRY_COMPUTE_CACHE_DIR: join(directory, 'cache'),
    SKERRY_COMPUTE_PORT: '0',
    SKERRY_LOG_LEVEL: 'error',
  });
  try {
    const { urls } = await awaitReady<{ urls: string[] }>(node, 'the compute node', hear(node));
    const url = urls[0]!;

    const login = await fetch(`${url}/about/login`);
    assert.equal(login.status, 401);
    const { error, ...refusal } = (await login.json()) as { error: string };
    assert.match(error, /sign each request/);
    assert.deepEqual(refusal, { success: false, status: 'error', code: 'SIGNATURE_REQUIRED' });
    assert.match(login.headers.get('server') ?? '', /^skerry\//);

    await until('the node is announced', SOON_MS, async () => (await core.listNodes()).length === 1);
    const [announced] = await core.listNodes();
    const { nodeId, content } = announced!;
    assert.deepEqual(content.capacity, { cpu: 0, memory_mib: 0, disk_gib: 0 });
    assert.equal(content.reason?.code, 'HOST_NOT_READY');
    assert.match(content.reason?.message ?? '', /root/);

    const config = (await (await fetch(`${url}/status/config`)).json()) as {
      node_hash: string;
      computing: Record<string, unknown>;
      reason: { code: string };
      custom_domains: unknown;
    };
    assert.equal(config.node_hash, nodeId);
    assert.equal(config.computing.ENABLE_QEMU_SUPPORT, false);
    assert.equal(config.reason.code, 'HOST_NOT_READY');
    assert.deepEqual(config.custom_domains, { zone: null });

    const usage = (await (await fetch(`${url}/about/usage/system`)).json()) as Record<
      string,
      Record<string, number>
    >;
    assert.ok(
      usage.cpu!.count! >= 1 && usage.mem!.total_kB! > usage.mem!.available_kB! && usage.disk!.total_kB! > 0,
    );
    assert.deepEqual(await (await fetch(`${url}/v2/about/executions/list`)).json(), {});
    assert.deepEqual(await (await fetch(`${url}/about/executions/list`)).json(), {});
    const capability = (await (await fetch(`${url}/about/capability`)).json()) as Record<
      string,
      Record<string, unknown>
    >;
    assert.equal(capability.cpu!.count, usage.cpu!.count);
    assert.equal(capability.memory!.units, 'MiB');
    const version = async (reference: string) => {
      const answer = await fetch(`${url}/status/check/version?reference=${reference}`);
      return [answer.status, (await answer.text()).split(':', 1)[0]];
    };
    assert.deepEqual(await version('0.0.1'), [200, 'Up-to-date']);
    assert.deepEqual(await version('v999.0'), [403, 'Outdated']);
    assert.equal((await version('new'))[0], 400);
    const ipv6 = (await (await fetch(`${url}/status/check/ipv6`)).json()) as Record<string, unknown>;
    assert.equal(ipv6.vm, false, 'nothing runs here');
    const host = await fetch(`${url}/status/check/host`);
    const { ipv4 } = (await host.json()) as Record<string, Record<string, unknown>>;
    assert.deepEqual(Object.keys(ipv4!), ['egress', 'dns', 'domain', 'http']);
    assert.equal(ipv4!.http, true, 'the node reaches itself');
    assert.deepEqual(await (await fetch(`${url}/domains/list`)).json(), []);
    await checkDoors(url, core);

    const send = overHttp(() => url);
    for (const [id, operation] of Object.entries({ ...NODE_API, ...REFERENCE_API })) {
      const asked = operation === NODE_API.checkVersion ? { query: { reference: '0.1.0' } } : {};
      const answered = await checkOperation(send, operation, asked);
      assert.deepEqual(listUnanswered(operation, COMPUTE_EXAMPLES[id], [answered]), [], id);
    }
    const proved = await checkOperation(send, PROOF_API.proveNode, { query: { challenge: '0'.repeat(64) } });
    assert.equal(proved.statusCode, 200);
    for (const operation of Object.values(PROGRAMS_API)) {
      const refused = await checkOperation(send, operation, { params: { hash: '0'.repeat(64) } });
      assert.equal((JSON.parse(refused.payload) as { code: string }).code, 'NO_RUNNER', operation.path);
    }
    const plain = await checkOperation(send, CONSOLE_API.streamMachineLogs, {
      params: { ref: '0'.repeat(64) },
    });
    assert.deepEqual([plain.statusCode, plain.headers.upgrade], [426, 'websocket']);
    const unknown = { body: { instance: '0'.repeat(64) } };
    const notified = await checkOperation(send, ALLOCATIONS_API.notifyAllocation, unknown);
    assert.equal(notified.statusCode, 503);
    for (const operation of Object.values(MACHINES_API)) {
      const params = { ref: '0'.repeat(64), id: '0'.repeat(16), name: 'x' };
      const refused = await checkOperation(send, operation, { params });
      assert.ok(refused.statusCode >= 400, operation.path);
    }

    const missing = await fetch(`${url}/about/nothing`);
    assert.equal(missing.status, 404);
    assert.equal(((await missing.json()) as { code: string }).code, 'ROUTE_NOT_FOUND');

    const { instance_id: id } = await core.create({
      sshKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz',
      allowedPorts: [22],
      node: announced!,
      ipv6Prefix: content.ipv6_prefix,
    });
    const view = await core.until(id, ({ phase }) => phase === 'failed', SOON_MS);
    assert.equal(view.reason?.code, 'HOST_NOT_READY');
  } finally {
    await endProcess(node, 'SIGTERM');
    await rm(directory, { recursive: true, force: true });
  }
});

test('where virtual machines cannot run for now, the custom domains of those that were here are kept', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-compute-'));
  await chmod(directory, 0o777);
  const dataDir = join(directory, 'data');
  /** The names that the node has once it is ready. */
  const listDomains = async () => {
    const node = startAsOrdinaryUser({
      SKERRY_COMPUTE_CORE_URL: 'http://127.0.0.1:1',
      SKERRY_COMPUTE_DATA_DIR: dataDir,
      SKERRY_COMPUTE_CACHE_DIR: join(directory, 'cache'),
      SKERRY_COMPUTE_DOMAIN_ZONE: 'zone.test',
      SKERRY_COMPUTE_PORT: '0',
      SKERRY_LOG_LEVEL: 'error',
    });
    try {
      const { urls } = await awaitReady<{ urls: string[] }>(node, 'the compute node', hear(node));
      const listed = (await (await fetch(`${urls[0]}/domains/status`)).json()) as { name: string }[];
      return listed.map(({ name }) => name);
    } finally {
      await endProcess(node, 'SIGTERM');
    }
  };
  try {
    assert.deepEqual(await listDomains(), []);
    const proof = { cname: true, ownerProof: true };
    const instance = { owner: `0x${'1'.repeat(40)}`, instanceId: 'a'.repeat(64) };
    const domains = [{ name: 'www.custom.test', ...instance, isActive: true, proof }];
    const kept = join(dataDir, 'domains.json');
    await writeFile(kept, JSON.stringify(domains));
    assert.deepEqual(await listDomains(), ['www.custom.test']);
    assert.deepEqual(JSON.parse(await readFile(kept, 'utf8')), domains);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/** The status that an offer to upgrade is answered with. */
async function offer(url: string, upgrade: string): Promise<number | undefined> {
  const headers = {
    ...{ connection: 'Upgrade', upgrade },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  };
  const asked = request(url, { headers }).end();
  const { statusCode } = await new Promise<IncomingMessage>((resolve, reject) =>
    asked.once('response', resolve).once('upgrade', resolve).once('error', reject),
  );
  asked.destroy();
  return statusCode;
}

/** What needs a signature says so, and what the core node does not say is not done. */
async function checkDoors(url: string, core: RealCore): Promise<void> {
  const id = 'c'.repeat(64);
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(url + path, init);
    return [answer.status, ((await answer.json()) as { code?: string }).code];
  };
  const machine = `/control/machine/${id}`;
  assert.deepEqual(await ask(`${machine}/logs`), [401, 'SIGNATURE_REQUIRED']);
  assert.deepEqual(await ask(`${machine}/stop`, { method: 'POST' }), [401, 'SIGNATURE_REQUIRED']);
  assert.deepEqual(await ask(`${machine}/backup/${'0'.repeat(16)}?expires=9e15&signature=00`), [
    401,
    'INVALID_SIGNATURE',
  ]);
  assert.deepEqual(await ask('/control/machine/xyz/logs'), [400, 'INVALID_PARAMETERS']);
  assert.deepEqual(await ask(`${machine}/stream_logs`), [426, 'UPGRADE_REQUIRED']);
  // Anybody may offer to go on in another protocol.
  for (const upgrade of ['h2c', 'websocket'])
    assert.equal(await offer(`${url}/about/capability`, upgrade), 200, upgrade);
  assert.equal(await offer(`${url}${machine}/stream_logs`, 'h2c'), 426);
  assert.equal(await offer(`${url}${machine}/stream_logs`, 'websocket'), 101);
  assert.deepEqual(await ask(`${machine}/update`, { method: 'POST' }), [404, 'INSTANCE_NOT_FOUND']);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  assert.deepEqual(await post('/control/allocations', { instances: [id] }), [401, 'SIGNATURE_REQUIRED']);
  assert.equal(await sayHowLong(`${url}/control/allocations`, LIMITS.jsonBodyBytes + 1), 413);
  const body = JSON.stringify({ instances: [id] });
  const head = JSON.stringify({
    method: 'POST',
    path: '/control/allocations',
    body_sha256: createHash('sha256').update(body).digest('hex'),
    iat: Math.floor(Date.now() / 1000),
  });
  const authorization = `Net-EIP191-V1 sig=${core.owner.sign(head)},payload=${Buffer.from(head).toString('hex')}`;
  assert.deepEqual(await post('/control/allocations', { instances: [id] }, { authorization }), [
    403,
    'NOT_PERMITTED',
  ]);
  assert.deepEqual(await post('/control/allocations', { instances: [] }, { authorization }), [
    401,
    'INVALID_SIGNATURE',
  ]);
  assert.equal((await post('/control/allocation/notify', { instance: id }))[0], 503);
  assert.deepEqual(await post('/control/allocation/notify', { instance: 'x' }), [400, 'INVALID_PARAMETERS']);
  // A pass for a machine that is not here is read and has no effect, however often it comes.
  const pass = await OwnerPass.create(core.owner, { domain: new URL(url).hostname });
  const headers = await pass.headers({ method: 'POST', path: `${machine}/reboot` });
  assert.deepEqual(await ask(`${machine}/reboot`, { method: 'POST', headers }), [404, 'INSTANCE_NOT_FOUND']);
  assert.deepEqual(await ask(`${machine}/reboot`, { method: 'POST', headers }), [404, 'INSTANCE_NOT_FOUND']);
  assert.deepEqual(await ask(`${machine}/stop`, { method: 'POST', headers }), [401, 'INVALID_SIGNATURE']);
}
