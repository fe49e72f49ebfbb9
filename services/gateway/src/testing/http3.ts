import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@skerry/kit';
import { type Browser, chromium, type Page } from 'playwright-core';
import { NativeDataPlane } from '../dataplane/native/plane.ts';
import { builtForTests } from '../dataplane/native/testing/built.ts';
import { type Certificate, createCertificate } from '../dataplane/testing/suite/certificate.ts';
import { NAME_A, NAME_B, NAME_DEAD, NAME_UNKNOWN, ROUTES, until } from '../dataplane/testing/suite/world.ts';

const EXECUTABLE = '/usr/bin/chromium';
/** Without an answer Chromium waits for four seconds. */
const REFUSED_MS = 3_000;
const NOBODY = 9;

export type Say = (text: string) => void;

export interface Site {
  readonly name: string;
  readonly certificate: Certificate;
  readonly data: Buffer;
}

interface Servers {
  readonly process: ChildProcess;
  readonly sites: readonly Site[];
}

const pinOf = ({ cert }: Certificate) =>
  createHash('sha256')
    .update(new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64');

/**
 * Caddy in the place of two instances, each with a certificate of its own and a file.
 *
 * @param bytes of each file
 * @param uploads port of a server of ours on loopback that is given what is sent to /upload
 */
export async function startCaddy(
  directory: string,
  port: number,
  bytes: number,
  uploads?: number,
): Promise<Servers> {
  const sites = [
    { name: NAME_A, bind: '::1' },
    { name: NAME_B, bind: '127.0.0.2' },
  ].map((site) => ({ ...site, certificate: createCertificate(site.name), data: randomBytes(bytes) }));
  const proxy = uploads === undefined ? '' : `  reverse_proxy /upload 127.0.0.1:${uploads}\n`;
  const blocks = await Promise.all(
    sites.map(async ({ name, bind, certificate, data }) => {
      const at = (file: string) => join(directory, `${name}-${file}`);
      await mkdir(at('files'));
      await Promise.all([
        writeFile(at('cert.pem'), certificate.cert),
        writeFile(at('key.pem'), certificate.key),
        writeFile(join(at('files'), 'data'), data),
        writeFile(join(at('files'), 'index.html'), `<title>${name}</title>`),
      ]);
      return `https://${name}:${port} {\n  bind ${bind}\n  tls ${at('cert.pem')} ${at('key.pem')}\n  root * ${at('files')}\n${proxy}  file_server\n}\n`;
    }),
  );
  const caddyfile = join(directory, 'Caddyfile');
  await writeFile(caddyfile, `{\n  admin off\n  auto_https off\n}\n${blocks.join('')}`);
  const process_ = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', caddyfile], {
    env: { ...process.env, HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  process_.stderr.on('data', (chunk) => {
    said += chunk;
  });
  await until(() => {
    assert.equal(process_.exitCode, null, said);
    return said.includes('serving initial configuration');
  });
  return { process: process_, sites };
}

export async function endOf(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

interface PlaneOptions {
  readonly upstreamHttpsPort: number;
  readonly handoverPath: string;
  /** Of a plane that it replaces. */
  readonly replacedPort?: number;
}

/** The native plane with QUIC, with its routes. */
export async function startPlane({
  upstreamHttpsPort,
  handoverPath,
  replacedPort,
}: PlaneOptions): Promise<{ plane: NativeDataPlane; port: number }> {
  const plane = new NativeDataPlane({
    hosts: ['127.0.0.1'],
    httpPort: 0,
    httpsPort: replacedPort ?? 0,
    upstreamHttpPort: NOBODY,
    upstreamHttpsPort,
    quic: 'yes',
    explain: (hostname) => ({ code: 'HOSTNAME_NOT_FOUND', message: hostname }),
    path: await builtForTests(),
    handover: {
      path: handoverPath,
      replace: replacedPort !== undefined,
      drainMs: 0,
      onReplaced: () => {},
    },
    onTrouble: (details, text) => assert.fail(`${text} ${JSON.stringify(details)}`),
  });
  plane.replaceTable(ROUTES);
  return { plane, port: (await plane.listen()).https };
}

/** @param more arguments of Chromium */
export const startBrowser = (
  port: number,
  { sites }: Pick<Servers, 'sites'>,
  ...more: readonly string[]
): Promise<Browser> =>
  chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      ...more,
      '--no-sandbox',
      // A private certificate is no reason for Chromium to try QUIC: tests have to ask for it.
      `--origin-to-force-quic-on=${[NAME_A, NAME_B, NAME_DEAD, NAME_UNKNOWN].map((name) => `${name}:443`).join(',')}`,
      `--ignore-certificate-errors-spki-list=${sites.map(({ certificate }) => pinOf(certificate)).join(',')}`,
      `--host-resolver-rules=MAP * 127.0.0.1:${port}`,
    ],
  });

export async function openSite(browser: Browser, { name }: Site): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`https://${name}/`);
  assert.equal(await page.title(), name);
  return page;
}

/** @param protocol as Chromium calls it */
export async function checkFile(page: Page, { name, data }: Site, say: Say, protocol = 'h3'): Promise<void> {
  const sinceMs = performance.now();
  const seen = await page.evaluate(async () => {
    const body = await (await fetch('/data', { cache: 'no-store' })).arrayBuffer();
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
    const entries = performance.getEntries() as (PerformanceEntry & { nextHopProtocol?: string })[];
    return { hash: [...hash], protocols: entries.flatMap((entry) => entry.nextHopProtocol || []) };
  });
  assert.deepEqual(Buffer.from(seen.hash), createHash('sha256').update(data).digest());
  assert.deepEqual([...new Set(seen.protocols)], [protocol]);
  say(
    `${name}: ${data.length} bytes over ${protocol} in ${Math.round(performance.now() - sinceMs)} ms, the same hash`,
  );
}

export async function checkRefusal(browser: Browser, name: string, say: Say): Promise<void> {
  const page = await browser.newPage();
  const sinceMs = performance.now();
  await assert.rejects(page.goto(`https://${name}/`), /ERR_QUIC_PROTOCOL_ERROR/);
  const tookMs = Math.round(performance.now() - sinceMs);
  say(`${name}: refused in ${tookMs} ms`);
  assert.ok(tookMs < REFUSED_MS, `${tookMs} ms`);
}

/**
 * Chromium fetches a page and a file over HTTP/3 from Caddy under two names through one gateway, fetches the file again
 * on the same connections while another gateway replaces it, and learns at once of a name that is not routed and an instance that is not there.
 *
 * @param bytes of each file
 */
export async function checkHttp3(bytes: number, say: Say): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'skerry-http3-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const upstream = await findFreePort();
  const servers = await startCaddy(directory, upstream, bytes);
  stack.defer(() => endOf(servers.process));
  const options = { upstreamHttpsPort: upstream, handoverPath: join(directory, 'listeners.sock') };
  const { plane, port } = await startPlane(options);
  stack.use(plane);
  const browser = await startBrowser(port, servers);
  stack.defer(() => browser.close());
  const pages = await Promise.all(servers.sites.map((site) => openSite(browser, site)));
  for (const [index, site] of servers.sites.entries()) await checkFile(pages[index]!, site, say);
  const before = plane.stats().quic;
  assert.ok(before.figures.quicBytesToClients > 2 * bytes && before.outcomes.forwarded >= 2);
  const going = Promise.all(servers.sites.map((site, index) => checkFile(pages[index]!, site, say)));
  await until(() => plane.stats().quic.figures.quicBytesToClients > 2.5 * bytes);
  const { plane: next } = await startPlane({ ...options, replacedPort: port });
  stack.use(next);
  say('another gateway has taken over');
  await going;
  assert.ok(next.stats().quic.figures.quicBytesToClients > 0);
  assert.equal(next.stats().quic.outcomes.forwarded, 0, 'on the connections that there were');
  for (const name of [NAME_UNKNOWN, NAME_DEAD]) await checkRefusal(browser, name, say);
  const { outcomes } = next.stats().quic;
  assert.ok(outcomes.unknown_name > 0 && outcomes.connect_failed > 0);
}
