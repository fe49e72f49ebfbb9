import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { skerryPaths } from '@skerry/kit';
import { hostnameOf, type InstanceView } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import { openByName } from './console/reach.ts';
import { skerryHere, succeedHere } from './here.ts';
import { end, startNetwork, type Up } from './network.ts';
import { findProcesses, listDescendants, residentMib } from './processes.ts';
import { run, say, skerry as skerryAlone, succeed, until } from './shell.ts';

const CORE = 'http://127.0.0.1:4024';
const GATEWAY = 'http://127.0.0.1:8081';
const DOMAIN = 'skerry.localhost';
/** Where custom domains point. No name server is asked here: nothing outside can be reached. */
const ZONE = 'instance.example.net';
const API_KEY = 'first-light-api-key';
/** A name is routed by the event that tells the address, long before the gateway's next full reading. */
const SYNC_PERIOD_MS = 300_000;
const ROUTED_WITHIN_MS = 100_000;
/** Only what hangs takes as long. */
const SOON_MS = 600_000;
const DAEMONS = ['core', 'scheduler', 'compute', 'gateway'] as const;

const settingsOf = (home: string) => ({
  SKERRY_HOME: home,
  SKERRY_CACHE: skerryPaths(readEnvironment()).cache,
  SKERRY_GATEWAY_API_KEYS: API_KEY,
  SKERRY_GATEWAY_SYNC_INTERVAL_MS: String(SYNC_PERIOD_MS),
  SKERRY_COMPUTE_DOMAIN_ZONE: ZONE,
});

/** The processes of a daemon, not that of a launcher above it. */
const listDaemons = (up: Up, name: string) =>
  listDescendants(up.pid).filter(({ commandLine }) =>
    new RegExp(`skerry\\.js ${name}( |$)`).test(commandLine),
  );

function findDaemon(up: Up, name: string): number {
  const found = listDaemons(up, name);
  assert.equal(found.length, 1, `one process of ${name}`);
  return found[0]!.pid;
}

/** The process of the one virtual machine of this network. */
const findMachine = (home: string) => findProcesses(new RegExp(`^qemu-system.*${home}`))[0]?.pid;

const getJson = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(url, init);
  // biome-ignore lint/suspicious/noExplicitAny: the test looks into whatever came back
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
};

/** The certificate that a client of the gateway is shown, as a SHA-256 fingerprint. */
async function seenFingerprint(host: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: 8443, servername: host, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

const curl = async (...args: string[]) =>
  (await run('curl', ['--silent', '--show-error', '--max-time', '120', ...args])).stdout;
/** Processes of their own are those that somebody waits for, and that hand over to ssh. */
const skerry = (...args: string[]) => succeedHere(process.env, ...args);
const inside = (command: string) => skerryAlone('instance', 'ssh', 'web', '--', command);

async function isReachable(host: string): Promise<boolean> {
  return (await curl('-k', `https://${host}:8443/`)).includes('s_server');
}

/** From the event that made the address known to the gateway's answer that the name is routed. */
async function measureRouting(
  core: CoreClient,
  cursor: string,
  name: string,
  signal: AbortSignal,
): Promise<number> {
  for await (const event of core.events({ cursor, signal })) {
    if (event.kind !== 'instance' || event.data.name !== name || event.data.ipv6 === '') continue;
    const lookup = `${GATEWAY}/api/lookup/${hostnameOf(event.data.instance_id)}`;
    await until('the name is routed', SOON_MS, async () => (await getJson(lookup)).body.active === true);
    return Date.now() - event.time_ms;
  }
  return assert.fail('the event stream ended');
}

async function createWeb(core: CoreClient, sshKey: string): Promise<InstanceView & { hostname: string }> {
  const { cursor } = await core.listInstances();
  const routing = measureRouting(core, cursor, 'web', AbortSignal.timeout(SOON_MS));
  const startMs = performance.now();
  const created = await skerryAlone(
    ...[
      'instance',
      'create',
      '--name',
      'web',
      '--image',
      'debian:12',
      '--cpu',
      '1',
      '--memory',
      '512',
      '--disk',
      '4',
    ],
    ...['--ssh-key', `${sshKey}.pub`, '--allow', '22,80,443', '--wait', '--json'],
  );
  say(`instance create --wait returned after ${Math.round(performance.now() - startMs)} ms`);
  const routedMs = await routing;
  say(`the name was routed ${routedMs} ms after the address was known`);
  assert.ok(routedMs < ROUTED_WITHIN_MS, `routed after ${routedMs} ms`);
  const web = JSON.parse(created);
  assert.deepEqual([web.name, web.status, web.phase], ['web', 'running', 'running']);
  assert.match(web.ipv6, /^fd/);
  return { ...web, hostname: hostnameOf(web.instance_id) };
}

/**
 * A TLS server with a certificate of its own, and a plain one. Gives the certificate's fingerprint, and what the machine runs on. In one
 * login: each is seconds of the processor where it is emulated.
 */
async function startServers(): Promise<{ readonly uname: string; readonly fingerprint: string }> {
  const printed = await inside(
    'uname -a && ' +
      'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=web -keyout /root/key.pem -out /root/cert.pem 2>/dev/null && ' +
      'openssl x509 -in /root/cert.pem -noout -fingerprint -sha256 && ' +
      "mkdir -p /srv/www && echo 'hello from port 80' > /srv/www/index.html && " +
      "for unit in 'tls openssl s_server -accept [::]:443 -www -key /root/key.pem -cert /root/cert.pem' 'plain python3 -m http.server --bind :: --directory /srv/www 80'; do " +
      'set -- $unit; name=$1; shift; systemd-run --quiet --unit $name --property Restart=always /usr/bin/$*; done',
  );
  const [uname, fingerprint] = printed.split('\n') as [string, string];
  return { uname, fingerprint: fingerprint.split('=')[1]! };
}

async function checkGatewayApi(web: InstanceView & { hostname: string }): Promise<void> {
  const record = {
    instance_hash: web.instance_id,
    subdomain: web.hostname,
    url: `${web.hostname}.${DOMAIN}`,
    ipv6: web.ipv6,
    active: true,
  };
  for (const path of [`/api/hash/${web.instance_id}`, `/api/lookup/${web.hostname}`]) {
    const { body, headers } = await getJson(`${GATEWAY}${path}`, {
      headers: { origin: 'https://page.example' },
    });
    assert.deepEqual(body, record);
    assert.equal(headers.get('access-control-allow-origin'), '*');
  }
  const status = await getJson(`${GATEWAY}/api/status`);
  assert.deepEqual([status.body.instance_count, status.body.route_count, status.body.domain], [1, 1, DOMAIN]);
  const sync = async (headers: Record<string, string>) =>
    getJson(`${GATEWAY}/api/sync`, { method: 'POST', headers });
  assert.equal((await sync({})).status, 401);
  assert.equal((await sync({ authorization: 'Bearer wrong' })).status, 403);
  const synced = await sync({ authorization: `Bearer ${API_KEY}` });
  assert.equal(synced.status, 200);
  assert.deepEqual(
    [synced.body.added, synced.body.removed, synced.body.changed, synced.body.route_count],
    [0, 0, 0, 1],
  );
  say(`POST /api/sync took ${synced.body.duration_ms} ms`);
}

/** Every daemon is killed in turn; the machine runs on, is reachable afterwards, and no message is lost. */
async function killEachDaemon(up: Up, core: CoreClient, host: string): Promise<void> {
  const countMessages = async () => (await core.listMessages()).pagination.total;
  for (const name of DAEMONS) {
    const before = await countMessages();
    const pid = findDaemon(up, name);
    process.kill(pid, 'SIGKILL');
    const backMs = await until(`${name} is back and the machine reachable`, SOON_MS, async () => {
      const isBack = listDaemons(up, name).some((one) => one.pid !== pid);
      return (
        isBack &&
        (await getJson(`${CORE}/health`).catch(() => undefined))?.status === 200 &&
        (await isReachable(host))
      );
    });
    assert.equal((await core.listInstances()).instances[0]!.phase, 'running');
    assert.ok((await countMessages()) >= before);
    say(`kill -9 of ${name}: reachable again after ${Math.round(backMs)} ms`);
  }
  assert.match(await inside('uname -a'), /Linux/);
}

/** The README's first program. */
async function checkProgram(home: string): Promise<void> {
  const file = join(home, 'hello.py');
  await writeFile(file, 'def main(variables, request): return {"hello": variables.get("name", "world")}\n');
  const hash = await skerry('program', 'create', file);
  assert.deepEqual(JSON.parse(await skerry('program', 'run', hash, '--var', 'name=Ada')), { hello: 'Ada' });
  assert.equal(await skerry('program', 'logs', hash), '');
  assert.match(await skerry('program', 'list'), new RegExp(`python3 +hello\\.py +${hash}`));
  await skerry('program', 'delete', hash, '--yes');
  const { code, err } = await skerryHere(process.env, ['program', 'run', hash]);
  assert.notEqual(code, 0, err);
  say(`a program ran, and was deleted: ${err.split('\n')[0]}`);
}

/** A claim, and the records that it wants. */
async function checkCustomDomain(): Promise<void> {
  const shown = JSON.parse(await skerry('domain', 'attach', 'www.example.org', 'web', '--json'));
  assert.deepEqual([shown.active, shown.cname], [false, 'unknown']);
  assert.match(
    await skerry('domain', 'list', 'web'),
    new RegExp(`CNAME +www\\.example\\.org +www\\.example\\.org\\.${ZONE}`),
  );
  await skerry('domain', 'detach', 'www.example.org');
  await until(
    'the name is detached',
    SOON_MS,
    async () => (await skerry('domain', 'list', 'web', '--json')) === '[]',
  );
}

/**
 * The life of a devnet and a machine on it, step by step, in a network namespace of its own.
 * @param home an empty directory
 * @param more what else is done on the network, once the machine is gone
 */
export async function playFirstLight(home: string, more: (core: string) => Promise<void>): Promise<void> {
  Object.assign(process.env, settingsOf(home));
  const sshKey = join(home, 'ssh-key');
  await succeed('ip', 'link', 'set', 'lo', 'up');
  await succeed('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', sshKey);
  const bootMs = performance.now();
  let up = await startNetwork();
  say(`the network was up after ${Math.round(performance.now() - bootMs)} ms`);
  say(`resident memory of the devnet without machines: ${residentMib(listDescendants(up.pid))} MiB`);
  const core = new CoreClient({ url: CORE, signer: createSigner(generatePrivateKey()) });

  await skerry('key', 'new');
  await checkProgram(home);
  const web = await createWeb(core, sshKey);
  const host = `${web.hostname}.${DOMAIN}`;
  assert.equal(await skerry('domain', 'name', 'web'), host);
  const { uname, fingerprint } = await startServers();
  assert.match(uname, /Linux .* x86_64 GNU\/Linux/);
  say(`instance ssh web -- uname -a: ${uname}`);
  await until('the TLS server answers', SOON_MS, () => isReachable(host));
  assert.equal(
    await seenFingerprint(host),
    fingerprint,
    "the certificate that the client sees is the machine's",
  );
  // Python takes longer to start than openssl.
  const isPlainOpen = async () => (await curl(`http://${host}:8080/`)).includes('hello from port 80');
  await until('port 80 answers', SOON_MS, isPlainOpen);
  assert.match(
    await curl('-k', `https://${hostnameOf('0'.repeat(64))}.${DOMAIN}:8443/`),
    /^$/,
    'an unknown name is not served',
  );
  say('TLS passed through with the machine’s own certificate; HTTP by Host');
  assert.match(await openByName(CORE, web.instance_id), /s_server/);
  say('the console followed it until it was reachable, and its page opened by a click on its name');
  await checkGatewayApi(web);
  await checkCustomDomain();

  await skerry('instance', 'update', 'web', '--allow', '22,443');
  await until('port 80 is closed', SOON_MS, async () => !(await isPlainOpen()));
  await skerry('instance', 'update', 'web', '--allow', '22,80,443');
  await until('port 80 is open', SOON_MS, isPlainOpen);
  say('firewall changes apply to the running machine');

  await killEachDaemon(up, core, host);
  const machineBefore = findMachine(home);
  assert.ok(machineBefore);
  const daemons = DAEMONS.map((name) => findDaemon(up, name));
  await end(up, 'SIGKILL');
  await until(
    'the daemons noticed',
    SOON_MS,
    async () => !daemons.some((pid) => listDescendants(pid).length > 0),
  );
  up = await startNetwork();
  await until('the machine is reachable', SOON_MS, () => isReachable(host));
  assert.equal(findMachine(home), machineBefore, 'the same machine runs on');
  say('kill -9 of the whole devnet: the machine ran on, and is reachable with the next one');

  await skerry('instance', 'stop', 'web', '--wait');
  assert.equal(JSON.parse(await skerry('instance', 'show', 'web', '--json')).status, 'stopped');
  assert.equal(findMachine(home), undefined);
  const unasked = await skerryHere(process.env, ['instance', 'delete', 'web']);
  assert.match(unasked.err, /CONFIRMATION_REQUIRED/);
  await skerry('instance', 'delete', 'web', '--yes', '--erase');
  assert.deepEqual(JSON.parse(await skerry('instance', 'list', '--json')), []);
  say('deleted, and its disk erased');
  await more(CORE);
  assert.equal(await end(up, 'SIGINT'), 0);
  say('stopped');
}
