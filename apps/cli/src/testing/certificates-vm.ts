// Caddy in a virtual machine gets its certificates from a real ACME server, through the gateway. Run by
// certificates.soak.test.ts in a network namespace of its own; the ACME server is in another one behind it, since a guest
// reaches the world through its node but not the node itself.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skerryPaths } from '@skerry/kit';
import { hostnameOf } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import {
  type Acme,
  type Challenge,
  caddyfileOf,
  findIssuer,
  listProven,
  readPage,
  startAcme,
} from './acme.ts';
import { type Guest, inside, put } from './guest.ts';
import { end, startNetwork } from './network.ts';
import { findProcesses, playAt } from './processes.ts';
import { say, skerry, succeed, until } from './shell.ts';

const DOMAIN = 'apps.test';
/** Of documentation (RFC 3849), as any address of the Internet: guests reach no private ones. */
const [NEAR, FAR] = ['2001:db8:ace::1', '2001:db8:ace::2'];
const GATEWAY = { http: 8080, https: 8443 };
const SOON_MS = 120_000;

const home = await mkdtemp(join(tmpdir(), 'skerry-certificates-'));
const cache = skerryPaths(readEnvironment()).cache;
Object.assign(process.env, {
  SKERRY_HOME: home,
  SKERRY_CACHE: cache,
  SKERRY_GATEWAY_HOST: '::',
  SKERRY_GATEWAY_DOMAIN: DOMAIN,
});
const sshKey = join(home, 'ssh-key');

/** Another network, one hop away. Gives what starts a program in it. */
async function openFarNetwork(): Promise<string[]> {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
  await once(holder, 'spawn');
  await until('the network is there', 5000, async () =>
    findProcesses(/^sleep infinity$/).some(({ pid }) => pid === holder.pid),
  );
  const far = ['nsenter', '--net', '--target', String(holder.pid)];
  const inFar = (...command: string[]) => succeed(far[0]!, ...far.slice(1), ...command);
  await succeed(
    'ip',
    'link',
    'add',
    'acme0',
    'type',
    'veth',
    'peer',
    'name',
    'acme1',
    'netns',
    String(holder.pid),
  );
  await succeed('ip', 'address', 'add', `${NEAR}/64`, 'dev', 'acme0', 'nodad');
  await succeed('ip', 'link', 'set', 'acme0', 'up');
  await inFar('ip', 'link', 'set', 'lo', 'up');
  await inFar('ip', 'address', 'add', `${FAR}/64`, 'dev', 'acme1', 'nodad');
  await inFar('ip', 'link', 'set', 'acme1', 'up');
  await inFar('ip', '-6', 'route', 'add', 'default', 'via', NEAR!);
  return far;
}

async function proveBy(challenge: Challenge, acme: Acme, host: string, web: Guest): Promise<void> {
  const storage = `/root/caddy-${challenge}`;
  const answer = `proven by ${challenge}`;
  const caddyfile = join(home, 'Caddyfile');
  const options = { directoryUrl: acme.directoryUrl, apiCertificatePath: '/root/acme.pem', storage };
  await writeFile(caddyfile, caddyfileOf([{ host, challenge, answer }], options));
  await put(web, caddyfile, '/root/Caddyfile');
  const startMs = performance.now();
  const unit = `caddy-${challenge}`;
  await inside(
    web,
    `systemd-run --quiet --unit=${unit} --setenv=HOME=/root /usr/local/bin/caddy run --adapter caddyfile --config /root/Caddyfile`,
  );
  const root = await acme.readRoot();
  const rootPath = join(home, 'root.pem');
  await writeFile(rootPath, root);
  const gateway = { address: '127.0.0.1', https: GATEWAY.https };
  await until(
    `a certificate by ${challenge}`,
    SOON_MS,
    async () => (await findIssuer(gateway, host, root)) !== undefined,
  );
  say(
    `${challenge}: served with its certificate ${Math.round(performance.now() - startMs)} ms after the start of Caddy`,
  );
  assert.match((await findIssuer(gateway, host, root))!, /^Pebble Intermediate CA/);
  assert.equal(await readPage(gateway, host, rootPath), answer);
  assert.deepEqual(listProven(await inside(web, `journalctl --unit=${unit} --output=cat`)), [challenge]);
  await inside(web, `systemctl stop ${unit}`);
}

async function scenario(): Promise<void> {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  await succeed('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', sshKey);
  const inNetwork = await openFarNetwork();
  const up = await startNetwork();
  await skerry('key', 'new');
  const created = await skerry(
    ...['instance', 'create', '--name', 'web', '--image', 'debian:12', '--memory', '512', '--disk', '4'],
    ...['--ssh-key', `${sshKey}.pub`, '--allow', '22,80,443', '--wait', '--json'],
  );
  const { instance_id: id, ipv6 } = JSON.parse(created) as { instance_id: string; ipv6: string };
  const host = `${hostnameOf(id)}.${DOMAIN}`;
  const web = { name: 'web', ipv6, sshKey };
  say(`the machine runs: ${host}`);
  await using acme = await startAcme({
    directory: home,
    address: FAR!,
    gateway: { ipv4: '', ipv6: NEAR!, ...GATEWAY },
    inNetwork,
  });
  await put(web, '/usr/bin/caddy', '/usr/local/bin/caddy', '755');
  await put(web, join(home, 'acme-cert.pem'), '/root/acme.pem');
  await proveBy('tls-alpn-01', acme, host, web);
  await proveBy('http-01', acme, host, web);
  assert.equal(await end(up, 'SIGINT'), 0);
}

await playAt(home, scenario, () => readFile(join(home, 'pebble.log'), 'utf8').catch(() => ''));
