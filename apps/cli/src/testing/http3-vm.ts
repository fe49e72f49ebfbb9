// Chromium fetches a page and a file over HTTP/3 from Caddy in a virtual machine: by its name through the gateway of a whole
// network, and by a custom domain, whose owner a name server proves, through the front of the compute node. Run by http3-vm.soak.test.ts in a network namespace of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skerryPaths } from '@skerry/kit';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { hostnameOf } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import { type Browsing, startBrowser } from './browser.ts';
import { type Guest, inside, put } from './guest.ts';
import { end, startNetwork } from './network.ts';
import { playAt } from './processes.ts';
import { SKERRY, say, skerry, succeed, until } from './shell.ts';

const DOMAIN = 'apps.test';
const GATEWAY_HTTPS_PORT = 8443;
const NODE = 'http://127.0.0.1:4020';
const FRONT_HTTPS_PORT = 9443;
const ZONE = 'instance.test';
const CUSTOM_ZONE = 'custom.test';
const CUSTOM_DOMAIN = `www.${CUSTOM_ZONE}`;
/** Of the name server; port 53 is nobody else's here. */
const NAME_SERVER = '198.51.100.53';
const DATA_MIB = 16;
/** Only what hangs takes as long. */
const SOON_MS = 300_000;
/** Without an answer Chromium waits for four seconds. */
const REFUSED_MS = 3_000;
const LOOK = { width: 390, theme: 'light' } as const;

const home = await mkdtemp(join(tmpdir(), 'skerry-http3-vm-'));
const cache = skerryPaths(readEnvironment()).cache;
Object.assign(process.env, {
  SKERRY_HOME: home,
  SKERRY_CACHE: cache,
  SKERRY_GATEWAY_DOMAIN: DOMAIN,
  SKERRY_COMPUTE_DOMAIN_ZONE: ZONE,
  SKERRY_COMPUTE_DOMAIN_RESOLVERS: NAME_SERVER,
  SKERRY_COMPUTE_ALLOW_PRIVATE: 'yes',
});

interface Site {
  readonly host: string;
  /** Of the gateway that it is reached through. */
  readonly port: number;
  /** Of the certificate's public key, as Chromium takes it. */
  readonly pin: string;
  readonly dataSha256: string;
}

const caddyfileOf = (host: string) => `{
  admin off
  auto_https off
}
https://${host}:443, https://${CUSTOM_DOMAIN}:443 {
  tls /root/cert.pem /root/key.pem
  root * /srv/www
  file_server
}
`;

async function createMachine(): Promise<Guest & { host: string }> {
  const sshKey = join(home, 'ssh-key');
  await succeed('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', sshKey);
  await skerry('key', 'new');
  const created = await skerry(
    ...['instance', 'create', '--name', 'web', '--image', 'debian:12', '--memory', '512', '--disk', '4'],
    ...['--ssh-key', `${sshKey}.pub`, '--allow', '22,443,udp:443', '--wait', '--json'],
  );
  const { instance_id: id, ipv6 } = JSON.parse(created) as { instance_id: string; ipv6: string };
  return { name: 'web', ipv6, sshKey, host: `${hostnameOf(id)}.${DOMAIN}` };
}

/** Caddy in the machine, with a key that never leaves it. */
async function startCaddy(web: Guest & { host: string }): Promise<Site> {
  const { host } = web;
  const caddyfile = join(home, 'Caddyfile');
  await writeFile(caddyfile, caddyfileOf(host));
  await put(web, '/usr/bin/caddy', '/usr/local/bin/caddy', '755');
  await put(web, caddyfile, '/root/Caddyfile');
  await inside(
    web,
    `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=web -addext subjectAltName=DNS:${host},DNS:${CUSTOM_DOMAIN} -keyout /root/key.pem -out /root/cert.pem 2>/dev/null && ` +
      `mkdir -p /srv/www && echo '<!doctype html><title>web</title><link rel="icon" href="data:,">' > /srv/www/index.html && ` +
      `head -c ${DATA_MIB}M /dev/urandom > /srv/www/data && ` +
      'systemd-run --quiet --unit=caddy --setenv=HOME=/root /usr/local/bin/caddy run --adapter caddyfile --config /root/Caddyfile',
  );
  const { publicKey } = new X509Certificate(await inside(web, 'cat /root/cert.pem'));
  const [dataSha256 = ''] = (await inside(web, 'sha256sum /srv/www/data')).split(' ');
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return {
    host,
    port: GATEWAY_HTTPS_PORT,
    pin: createHash('sha256').update(spki).digest('base64'),
    dataSha256,
  };
}

const startChromium = ({ host, port, pin }: Site, ...more: readonly string[]) =>
  startBrowser(
    `--ignore-certificate-errors-spki-list=${pin}`,
    `--host-resolver-rules=MAP * 127.0.0.1:${port}`,
    // A private certificate is no reason for Chromium to try QUIC: tests have to ask for it.
    ...more.map((flag) => `${flag}=${host}:443`),
  );

/** What the browser saw: its own word on the protocol of everything that it fetched, and the file's digest. */
async function visit(browser: Browsing, { host, dataSha256 }: Site): Promise<string[]> {
  let protocols: string[] = [];
  await browser.look(`https://${host}/`, LOOK, async (page) => {
    assert.equal(await page.title(), 'web');
    const seen = await page.evaluate(async () => {
      const body = await (await fetch('/data', { cache: 'no-store' })).arrayBuffer();
      const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
      const entries = performance.getEntries() as (PerformanceEntry & { nextHopProtocol?: string })[];
      return { hash: [...hash], protocols: entries.flatMap((entry) => entry.nextHopProtocol || []) };
    });
    assert.equal(Buffer.from(seen.hash).toString('hex'), dataSha256);
    protocols = [...new Set(seen.protocols)];
  });
  return protocols;
}

async function why(host: string): Promise<{ ok: boolean | null; detail: string }> {
  return JSON.parse(await skerry('domain', 'why', host, '--json')).http3;
}

async function checkOverHttp3(site: Site): Promise<void> {
  await using browser = await startChromium(site, '--origin-to-force-quic-on');
  const sinceMs = performance.now();
  assert.deepEqual(await visit(browser, site), ['h3']);
  const tookMs = Math.round(performance.now() - sinceMs);
  say(`${site.host}: a page and ${DATA_MIB} MiB with the same hash, all of it over h3, in ${tookMs} ms`);
}

interface Attached {
  readonly active: boolean;
  readonly rules: readonly {
    readonly dns: { readonly type: string; readonly name: string; readonly value: string };
  }[];
}

const attach = async () =>
  JSON.parse(await skerry('domain', 'attach', CUSTOM_DOMAIN, 'web', '--json')) as Attached;

/** A name server of the domain's owner, with the records that the network asks for. */
async function startNameServer({ rules }: Attached): Promise<AsyncDisposable> {
  await succeed('ip', 'address', 'add', `${NAME_SERVER}/32`, 'dev', 'lo');
  const records = rules.map(({ dns: { type, name, value } }) => {
    const data = type === 'txt' ? `"${value}"` : `${value}.`;
    return `${name}. 60 IN ${type.toUpperCase()} ${data}\n`;
  });
  const [zoneFile, configFile] = [join(home, 'custom.zone'), join(home, 'nsd.conf')];
  const head = `$ORIGIN ${CUSTOM_ZONE}.\n$TTL 60\n@ IN SOA ns hostmaster 1 60 60 600 60\n@ IN NS ns\nns IN A ${NAME_SERVER}\n`;
  await writeFile(zoneFile, head + records.join(''));
  const files = ['pidfile', 'xfrdfile', 'zonelistfile'].map((file) => `  ${file}: "${join(home, file)}"\n`);
  await writeFile(
    configFile,
    `server:\n  ip-address: ${NAME_SERVER}\n  username: ""\n  chroot: ""\n  database: ""\n${files.join('')}` +
      `remote-control:\n  control-enable: no\nzone:\n  name: ${CUSTOM_ZONE}\n  zonefile: ${zoneFile}\n`,
  );
  const server = spawn('nsd', ['-d', '-c', configFile], { stdio: ['ignore', 'ignore', 'inherit'] });
  return { [Symbol.asyncDispose]: () => endProcess(server, 'SIGTERM') };
}

/** The front beside the compute node, as an operator starts it. */
async function startFront(): Promise<AsyncDisposable> {
  const front = spawn(process.execPath, [SKERRY, 'gateway'], {
    env: {
      ...process.env,
      SKERRY_GATEWAY_NODE_URL: NODE,
      SKERRY_GATEWAY_HOST: '127.0.0.1',
      SKERRY_GATEWAY_HTTP_PORT: '9080',
      SKERRY_GATEWAY_HTTPS_PORT: String(FRONT_HTTPS_PORT),
      SKERRY_GATEWAY_DATA_DIR: join(home, 'front'),
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await awaitReady(front, 'the front');
  return { [Symbol.asyncDispose]: () => endProcess(front, 'SIGTERM') };
}

async function checkCustomDomain(site: Site): Promise<void> {
  await using _server = await startNameServer(await attach());
  // The node asks again with each claim.
  await until('the domain is proven', SOON_MS, async () => (await attach()).active);
  say(`${CUSTOM_DOMAIN} is proven`);
  await using _front = await startFront();
  await checkOverHttp3({ ...site, host: CUSTOM_DOMAIN, port: FRONT_HTTPS_PORT });
}

/** Its machine takes no UDP any more: who insists on HTTP/3 is told at once, and others are served over TCP. */
async function checkWithoutUdp(forced: Browsing, site: Site): Promise<void> {
  await skerry('instance', 'update', 'web', '--allow', '22,443');
  await until('UDP is closed', SOON_MS, async () => (await why(site.host)).ok !== true);
  const sinceMs = performance.now();
  await assert.rejects(
    forced.look(`https://${site.host}/`, LOOK, async () => {}),
    /ERR_QUIC_PROTOCOL_ERROR/,
  );
  const tookMs = Math.round(performance.now() - sinceMs);
  assert.ok(tookMs < REFUSED_MS, `${tookMs} ms`);
  await using other = await startChromium(site);
  assert.deepEqual(await visit(other, site), ['h2']);
  say(`without UDP: told in ${tookMs} ms, and the same file over h2`);
}

async function scenario(): Promise<void> {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  const up = await startNetwork();
  const web = await createMachine();
  say(`the machine runs: ${web.host}`);
  const site = await startCaddy(web);
  await until('HTTP/3 reaches the machine', SOON_MS, async () => (await why(site.host)).ok === true);
  say(`why: ${(await why(site.host)).detail}`);
  await checkOverHttp3(site);
  await checkCustomDomain(site);
  await using forced = await startChromium(site, '--origin-to-force-quic-on');
  await checkWithoutUdp(forced, site);
  assert.equal(await end(up, 'SIGINT'), 0);
}

await playAt(home, scenario);
