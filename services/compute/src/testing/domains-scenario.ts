// Custom domains with a real authoritative name server, a real core node and the gateway's data plane; a namespace stands for
// the guest. Run by domains/live.e2e.test.ts.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CoreClient, createSigner, generatePrivateKey, type Signer } from '@skerry/client';
import { createHttpServer, createLogger, createReach, listen, serve } from '@skerry/kit';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { DomainRegistry, type NamedInstance } from '../domains/registry.ts';
import { run } from '../host/run.ts';
import { domainHandlers } from '../http/domains.ts';
import { guestLinkOf, placeOf } from '../instances/place.ts';
import { networkNames, tapName } from '../network/names.ts';
import { NodeNetwork } from '../network/network.ts';
import { Machine } from './namespaces.ts';
import { RealCore } from './real-core.ts';
import { until } from './wait.ts';

const SKERRY = fileURLToPath(new URL('../../../../apps/cli/bin/skerry.js', import.meta.url));
const NODE4 = '198.51.100.1';
const FAR4 = '198.51.100.2';
const PREFIX = '2001:db8:5:1::/64';
const POOL = '172.20.16.0/20';
const ZONE = 'instance.skerry.test';
const NAME = 'www.custom.test';
const SSH_PORT = 24_022;
/** Only what hangs takes as long. */
const SOON_MS = 300_000;
const ID = '7'.repeat(64);
const THEIRS = '8'.repeat(64);
const names = networkNames('abcdef0123456789'.repeat(4));

function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

/** NSD with the zone of the owner and the one of the network, both changed by writing a file and a signal. */
class NameServer implements AsyncDisposable {
  readonly #directory: string;
  #server: ChildProcess | undefined;
  #serial = 1;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async write(custom: string, network: string): Promise<void> {
    const head = (zone: string) =>
      `$ORIGIN ${zone}.\n$TTL 60\n@ IN SOA ns.${zone}. hostmaster.${zone}. ${this.#serial} 60 60 600 60\n@ IN NS ns.${zone}.\nns IN A ${NODE4}\n`;
    await writeFile(join(this.#directory, 'custom.zone'), head('custom.test') + custom);
    await writeFile(join(this.#directory, 'network.zone'), head(ZONE) + network);
    this.#serial++;
    await this[Symbol.asyncDispose]();
    const zone = (name: string, file: string) =>
      `zone:\n  name: ${name}\n  zonefile: ${join(this.#directory, file)}\n`;
    const config = join(this.#directory, 'nsd.conf');
    const paths = ['pidfile', 'xfrdfile', 'database', 'zonelistfile'].map(
      (name) => `  ${name}: "${name === 'database' ? '' : join(this.#directory, name)}"\n`,
    );
    await writeFile(
      config,
      `server:\n  ip-address: ${NODE4}\n  username: ""\n  chroot: ""\n  zonesdir: "${this.#directory}"\n${paths.join('')}remote-control:\n  control-enable: no\n${zone('custom.test', 'custom.zone')}${zone(ZONE, 'network.zone')}`,
    );
    this.#server = spawn('nsd', ['-d', '-c', config], { stdio: 'ignore' });
    const resolver = new Resolver({ timeout: 300, tries: 1 });
    resolver.setServers([NODE4]);
    await until('the name server answers', SOON_MS, async () =>
      resolver.resolveNs('custom.test').then(
        () => true,
        () => false,
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await endProcess(server, 'SIGTERM');
  }
}

/** The guest: HTTP that says the Host, TLS that says the server name, and something on port 22. */
async function startGuest(directory: string): Promise<{ guest: Machine; server: ChildProcess }> {
  const guest = await Machine.start();
  await guest.wire(tapName(names, ID));
  const { key, cert } = await makeCertificate(`DNS:${NAME}`);
  await writeFile(join(directory, 'tls.key'), key);
  await writeFile(join(directory, 'tls.pem'), cert);
  const code = `const fs = require('fs'); const say = (q, r) => r.end('http ' + q.headers.host);
    require('http').createServer(say).listen(80, '::');
    require('https').createServer({ key: fs.readFileSync('${directory}/tls.key'), cert: fs.readFileSync('${directory}/tls.pem') }, (q, r) => r.end('tls ' + q.socket.servername)).listen(443, '::');
    require('net').createServer((s) => { s.on('error', () => {}); s.end('SSH-2.0-test\\r\\n'); }).listen(22, '::', () => console.log('up'));`;
  const server = spawn('nsenter', [`--net=/proc/${guest.pid}/ns/net`, '--', process.execPath, '-e', code], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await awaitOutput(server, 'the guest', hear(server, ['stderr']));
  return { guest, server };
}

async function attach(core: RealCore, signer: Signer, content: Record<string, unknown>): Promise<void> {
  const client = new CoreClient({ url: core.url, signer });
  await client.postMessage({ type: 'AGGREGATE', channel: 'test', content: { key: 'domains', content } });
}

async function scenario(directory: string): Promise<void> {
  await run('ip', ['link', 'set', 'lo', 'up']);
  await using far = await Machine.start();
  await far.wire('up0');
  for (const address of [`${NODE4}/24`, '2001:db8:5:ff::1/64'])
    await run('ip', ['addr', 'add', address, 'dev', 'up0', ...(address.includes(':') ? ['nodad'] : [])]);
  await run('ip', ['link', 'set', 'up0', 'up']);
  await far.ip(
    'link set eth0 up',
    `addr add ${FAR4}/24 dev eth0`,
    '-6 addr add 2001:db8:5:ff::2/64 dev eth0 nodad',
    '-6 route add default via 2001:db8:5:ff::1',
  );
  const network = new NodeNetwork({
    names,
    prefix: PREFIX,
    ipv4Pool: POOL,
    lanOpen: false,
    openNetworks: [],
    guestConnections: 0,
    guestMbit: 0,
  });
  await network.start([]);
  const { guest, server } = await startGuest(directory);
  await using _guest = guest;
  const place = placeOf(names, PREFIX, ID);
  const link = guestLinkOf(
    place,
    POOL,
    { allowedPorts: [22, 80, 443] },
    { link: 0, hostPorts: { 22: SSH_PORT } },
  );
  await network.add(link);
  await guest.ip(
    'link set eth0 up',
    `-6 addr add ${link.guest}/124 dev eth0 nodad`,
    '-6 route add default via fe80::1 dev eth0',
    `addr add ${link.ipv4.guest}/30 dev eth0`,
    `route add default via ${link.ipv4.gateway}`,
  );

  await using core = await new RealCore().start();
  const thief = createSigner(generatePrivateKey());
  const owner = core.owner;
  const instances: NamedInstance[] = [
    { id: ID, owner: owner.address, ipv6: link.guest, ipv4: link.ipv4.guest },
    { id: THEIRS, owner: thief.address, ipv6: '2001:db8:5:1:3::dead', ipv4: null },
  ];
  const log = createLogger('test', 'silent');
  const makeRegistry = () =>
    new DomainRegistry({
      coreUrl: core.url,
      dataDir: directory,
      rules: { zone: ZONE, resolvers: [NODE4], mayReach: createReach(true) },
      instances: () => instances,
      log,
      signal: new AbortController().signal,
    });
  const domains = makeRegistry();
  const app = await createHttpServer({ log });
  const { listDomainRoutes, listDomains, getZone } = domainHandlers({
    domains,
    zone: ZONE,
    hostIpv4: () => NODE4,
  });
  serve(app, NODE_API.listDomainRoutes, listDomainRoutes);
  serve(app, NODE_API.listDomains, listDomains);
  serve(app, NODE_API.getZone, getZone);
  const nodeUrl = await listen(app, '127.0.0.1', 0);
  const front = spawn(process.execPath, [SKERRY, 'gateway'], {
    env: {
      ...bareEnvironment(),
      SKERRY_HOME: directory,
      SKERRY_GATEWAY_NODE_URL: nodeUrl,
      SKERRY_GATEWAY_HOST: NODE4,
      SKERRY_GATEWAY_HTTP_PORT: '80',
      SKERRY_GATEWAY_HTTPS_PORT: '443',
      SKERRY_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await awaitReady(front, 'the front');
  await using dns = new NameServer(directory);

  /** What a visitor far away gets, who asks the DNS as everybody does. */
  const visit = async (scheme: 'http' | 'https', family: '4' | '6') => {
    const type = family === '4' ? 'A' : 'AAAA';
    const lookUp = `const { Resolver } = require('dns/promises'); const r = new Resolver({ timeout: 5000, tries: 10 }); r.setServers(['${NODE4}']); r.resolve('${NAME}.${ZONE}', '${type}').then((a) => console.log(a[0]), () => console.log(''))`;
    const address = (await far.run(process.execPath, '-e', lookUp)).trim();
    if (address === '') return 'no address';
    const port = scheme === 'http' ? 80 : 443;
    const target = `${NAME}:${port}:${address.includes(':') ? `[${address}]` : address}`;
    return far
      .run('curl', '-sk', '-m', '60', '--resolve', target, `${scheme}://${NAME}/`)
      .catch(() => 'nothing');
  };
  const status = async () =>
    (await (await fetch(`${nodeUrl}/domains/status`)).json()) as {
      owner: string;
      active: boolean;
      cname: unknown;
      owner_proof: unknown;
    }[];
  const cname = `www IN CNAME ${NAME}.${ZONE}.\n`;
  const proof = (address: string) => `_control.www IN TXT "${address.toUpperCase().replace('0X', '0x')}"\n`;
  const claim = (id: string) => ({
    [NAME]: { message_id: id, type: 'instance', updated_at: new Date().toISOString() },
  });
  const zone = async () => (await fetch(`${nodeUrl}/domains/zone`)).text();
  try {
    step('a claim without proof is not served, and says what lacks');
    await dns.write('', '');
    await attach(core, owner, claim(ID));
    await domains.refresh();
    assert.deepEqual(await status().then(([one]) => [one!.active, one!.cname, one!.owner_proof]), [
      false,
      false,
      false,
    ]);
    assert.equal(await visit('http', '4'), 'no address');

    step('CNAME alone is not enough; with the TXT it is served');
    await dns.write(cname, '');
    await domains.refresh();
    assert.deepEqual(await status().then(([one]) => [one!.active, one!.cname, one!.owner_proof]), [
      false,
      true,
      false,
    ]);
    await dns.write(cname + proof(owner.address), '');
    await domains.refresh();
    assert.equal((await status())[0]!.active, true);
    await dns.write(cname + proof(owner.address), await zone());
    await until('the name answers', SOON_MS, async () => (await visit('http', '4')) === `http ${NAME}`);
    assert.equal(await visit('https', '4'), `tls ${NAME}`, 'TLS by server name over IPv4, untouched');
    assert.equal(await visit('http', '6'), `http ${NAME}`, 'direct over IPv6');
    assert.equal(await visit('https', '6'), `tls ${NAME}`);

    step('ssh: a port of the node over IPv4, port 22 over IPv6');
    const banner = (host: string, port: number) =>
      far.run(
        process.execPath,
        '-e',
        `require('net').connect(${port}, '${host}').on('data', (d) => console.log(String(d).trim())).on('error', () => {})`,
      );
    assert.equal((await banner(NODE4, SSH_PORT)).trim(), 'SSH-2.0-test');
    assert.equal((await banner(link.guest, 22)).trim(), 'SSH-2.0-test');

    step('another owner claims the name: the DNS decides');
    await attach(core, thief, claim(THEIRS));
    await domains.refresh();
    const active = async () => (await status()).filter((one) => one.active).map((one) => one.owner);
    assert.deepEqual(await active(), [owner.address]);
    await dns.write(cname + proof(owner.address) + proof(thief.address), await zone());
    await domains.refresh();
    assert.deepEqual(await active(), [owner.address], 'both are named: who has it keeps it');
    await dns.write(cname + proof(thief.address), await zone());
    await domains.refresh();
    assert.deepEqual(await active(), [thief.address], 'the name changed hands');
    await dns.write(cname + proof(owner.address), await zone());
    await domains.refresh();
    assert.deepEqual(await active(), [owner.address]);

    step('while the name server is away, and after a restart, what was proven stays');
    await dns[Symbol.asyncDispose]();
    await domains.refresh();
    assert.deepEqual(await active(), [owner.address]);
    const next = makeRegistry();
    await next.load();
    assert.equal(next.routes(NODE4)[0]?.name, NAME);

    step('detached, and attached again');
    await dns.write(cname + proof(owner.address), await zone());
    await attach(core, owner, { [NAME]: null });
    await domains.refresh();
    const curl = () =>
      far
        .run('curl', '-s', '-m', '60', '--resolve', `${NAME}:80:${NODE4}`, `http://${NAME}/`)
        .catch(() => '');
    await until('it is not served any more', SOON_MS, async () => !(await curl()).startsWith('http '));
    const detached = Math.floor(Date.now() / 1_000);
    await until('it is a later second', SOON_MS, () => Math.floor(Date.now() / 1_000) > detached);
    await attach(core, owner, claim(ID));
    await domains.refresh();
    await until('it is served again', SOON_MS, async () => (await curl()) === `http ${NAME}`);
  } finally {
    await endProcess(front, 'SIGTERM');
    server.kill('SIGKILL');
    await app.close();
    await network.clear();
  }
}

const directory = await mkdtemp(join(tmpdir(), 'skerry-domains-'));
try {
  await scenario(directory);
  step('done');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true, maxRetries: 20 });
}
