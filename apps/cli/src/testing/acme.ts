import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { run, until } from './shell.ts';

/** A real ACME server (Debian's `pebble`) with the DNS that it asks, and servers that get their certificates from it. */

const DIRECTORY_PORT = 14_000;
const MANAGEMENT_PORT = 15_000;
const DNS_PORT = 8053;
const START_MS = 20_000;

export interface AcmeOptions {
  /** Where its files go. */
  readonly directory: string;
  /** Where it listens. */
  readonly address: string;
  /** Where every name leads to, and the ports on which names are validated: the gateway's. */
  readonly gateway: {
    readonly ipv4: string;
    readonly ipv6: string;
    readonly http: number;
    readonly https: number;
  };
  /** What programs are started with, where they belong to another network namespace. */
  readonly inNetwork?: readonly string[];
}

export interface Acme extends AsyncDisposable {
  readonly directoryUrl: string;
  /** The certificate by which its own API is known, PEM. */
  readonly apiCertificate: string;
  /** The root of what it issues, PEM; new at every start. */
  readRoot(): Promise<string>;
}

const bracketed = (address: string) => (address.includes(':') ? `[${address}]` : address);

async function createApiCertificate(
  directory: string,
  address: string,
): Promise<{ key: string; cert: string }> {
  const [key, cert] = [join(directory, 'acme-key.pem'), join(directory, 'acme-cert.pem')];
  const made = await makeCertificate(`IP:${address}`);
  await writeFile(key, made.key);
  await writeFile(cert, made.cert);
  return { key, cert };
}

/** A program that runs until it is told to end; what it says goes to a file. */
async function start(
  command: readonly string[],
  log: string,
  env: Record<string, string> = {},
): Promise<ChildProcess> {
  const file = await open(log, 'w');
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', file.fd, file.fd],
    env: { ...process.env, ...env },
  });
  await once(child, 'spawn');
  await file.close();
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

const readHttps = (url: string, ca: string) =>
  new Promise<string>((resolve, reject) => {
    get(url, { ca }, (answer) => resolve(text(answer))).once('error', reject);
  });

export async function startAcme(options: AcmeOptions): Promise<Acme> {
  const { directory, address, gateway, inNetwork = [] } = options;
  const { key, cert } = await createApiCertificate(directory, address);
  const host = bracketed(address);
  const config = join(directory, 'pebble.json');
  const pebble = {
    listenAddress: `${host}:${DIRECTORY_PORT}`,
    managementListenAddress: `${host}:${MANAGEMENT_PORT}`,
    certificate: cert,
    privateKey: key,
    httpPort: gateway.http,
    tlsPort: gateway.https,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
  };
  await writeFile(config, JSON.stringify({ pebble }));
  const names = await start(
    [
      ...inNetwork,
      ...['pebble-challtestsrv', '-defaultIPv4', gateway.ipv4, '-defaultIPv6', gateway.ipv6],
      ...['-dns01', `${host}:${DNS_PORT}`, '-management', `${host}:8055`],
      ...['-http01', '', '-https01', '', '-tlsalpn01', ''],
    ],
    join(directory, 'dns.log'),
  );
  const server = await start(
    [...inNetwork, 'pebble', '-strict', '-config', config, '-dnsserver', `${host}:${DNS_PORT}`],
    join(directory, 'pebble.log'),
    { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' },
  );
  const apiCertificate = readFileSync(cert, 'utf8');
  const readRoot = () => readHttps(`https://${host}:${MANAGEMENT_PORT}/roots/0`, apiCertificate);
  await until('the ACME server answers', START_MS, () => readRoot().then(Boolean, () => false));
  return {
    directoryUrl: `https://${host}:${DIRECTORY_PORT}/dir`,
    apiCertificate,
    readRoot,
    async [Symbol.asyncDispose]() {
      await Promise.all([end(server), end(names)]);
    },
  };
}

export type Challenge = 'http-01' | 'tls-alpn-01';

export interface CaddySite {
  readonly host: string;
  /** The only way in which it may prove that the name is its own. */
  readonly challenge: Challenge;
  readonly answer: string;
}

export interface CaddyOptions {
  readonly directoryUrl: string;
  readonly apiCertificatePath: string;
  readonly storage: string;
  readonly ports?: { readonly http: number; readonly https: number };
}

/** A web server that gets its own certificates, as a person would configure it. */
export function caddyfileOf(sites: readonly CaddySite[], options: CaddyOptions): string {
  const { directoryUrl, apiCertificatePath, storage, ports } = options;
  const other = { 'http-01': 'disable_tlsalpn_challenge', 'tls-alpn-01': 'disable_http_challenge' } as const;
  const lines = [
    '{',
    '  admin off',
    '  email owner@example.org',
    `  acme_ca ${directoryUrl}`,
    `  acme_ca_root ${apiCertificatePath}`,
    `  storage file_system ${storage}`,
    ...(ports ? [`  http_port ${ports.http}`, `  https_port ${ports.https}`] : []),
    '}',
  ];
  for (const { host, challenge, answer } of sites)
    lines.push(
      `${host} {`,
      `  tls {`,
      `    issuer acme {`,
      `      ${other[challenge]}`,
      '    }',
      '  }',
      `  respond "${answer}"`,
      '}',
    );
  return `${lines.join('\n')}\n`;
}

export async function startCaddy(
  directory: string,
  caddyfile: string,
): Promise<AsyncDisposable & { readonly log: string }> {
  const path = join(directory, 'Caddyfile');
  const log = join(directory, 'caddy.log');
  await writeFile(path, caddyfile);
  const child = await start(['caddy', 'run', '--adapter', 'caddyfile', '--config', path], log, {
    HOME: directory,
    XDG_DATA_HOME: directory,
    XDG_CONFIG_HOME: directory,
  });
  return { log, [Symbol.asyncDispose]: () => end(child) };
}

/** The challenges by which this server's log says that it proved its names. */
export function listProven(log: string): string[] {
  const found = log
    .split('\n')
    .filter((line) => line.includes('served key authentication'))
    .map((line) => /"challenge":"([^"]+)"/.exec(line)?.[1] ?? '');
  return [...new Set(found)].sort();
}

export interface Gateway {
  readonly address: string;
  readonly https: number;
}

/** Who issued the certificate that a strict client sees and accepts; undefined where it accepts none. */
export async function findIssuer(gateway: Gateway, host: string, root: string): Promise<string | undefined> {
  const socket = connect({ host: gateway.address, port: gateway.https, servername: host, ca: root });
  try {
    await once(socket, 'secureConnect');
    return socket.authorized ? String(socket.getPeerCertificate().issuer.CN) : undefined;
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

/** The same page by curl, which knows nothing but the root. */
export async function readPage(gateway: Gateway, host: string, rootPath: string): Promise<string> {
  const to = `${host}:${gateway.https}:${bracketed(gateway.address)}`;
  const { stdout } = await run('curl', [
    ...['--silent', '--show-error', '--max-time', '20', '--tlsv1.2', '--cacert', rootPath],
    ...['--resolve', to, `https://${host}:${gateway.https}/`],
  ]);
  return stdout;
}
