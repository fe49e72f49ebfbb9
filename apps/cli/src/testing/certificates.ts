// A web server behind a gateway gets its certificates from a real ACME server. Run by certificates.soak.test.ts in a network
// namespace of its own: instances are processes here, at addresses of this machine.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gatewayService } from '@skerry/gateway';
import { createLogger, readConfig } from '@skerry/kit';
import { hostnameOf, type ItemHash } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import {
  type CaddySite,
  caddyfileOf,
  findIssuer,
  listProven,
  readPage,
  startAcme,
  startCaddy,
} from './acme.ts';
import { writeGatewayTable } from './gateway-table.ts';
import { say, succeed, until } from './shell.ts';

const DOMAIN = 'apps.test';
const INSTANCE = { http: 21_080, https: 21_443 };
const GATEWAY = { http: 20_080, https: 20_443 };
const SOON_MS = 30_000;
const HASHES = ['5330dcefe18'.padEnd(64, '0'), '63faf8b5db1'.padEnd(64, '0')] as ItemHash[];

async function scenario(directory: string, dataPlane: string): Promise<void> {
  const dataDir = join(directory, `gateway-${dataPlane}`);
  await writeGatewayTable(
    dataDir,
    HASHES.map((instance_id) => ({ instance_id })),
  );
  const config = readConfig(gatewayService.config, {
    ...readEnvironment(),
    SKERRY_GATEWAY_DOMAIN: DOMAIN,
    SKERRY_GATEWAY_HOST: '::',
    SKERRY_GATEWAY_DATA_DIR: dataDir,
    SKERRY_GATEWAY_DATA_PLANE: dataPlane,
    SKERRY_GATEWAY_HTTP_PORT: String(GATEWAY.http),
    SKERRY_GATEWAY_HTTPS_PORT: String(GATEWAY.https),
    SKERRY_GATEWAY_API_PORT: '0',
    SKERRY_GATEWAY_UPSTREAM_HTTP_PORT: String(INSTANCE.http),
    SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(INSTANCE.https),
    SKERRY_GATEWAY_ALLOW_LOCAL: 'yes',
    SKERRY_GATEWAY_CORE_URL: 'http://127.0.0.1:9',
  });
  const log = createLogger('gateway', 'silent');
  await using _gateway = await gatewayService.start(config, { log, signal: new AbortController().signal });
  const own = join(directory, dataPlane);
  await mkdir(own);
  const address = '127.0.0.1';
  await using acme = await startAcme({
    directory: own,
    address,
    gateway: { ipv4: address, ipv6: '', ...GATEWAY },
  });
  const sites: CaddySite[] = [
    { host: `${hostnameOf(HASHES[0]!)}.${DOMAIN}`, challenge: 'http-01', answer: 'proven by HTTP' },
    { host: `${hostnameOf(HASHES[1]!)}.${DOMAIN}`, challenge: 'tls-alpn-01', answer: 'proven by TLS' },
  ];
  const apiCertificatePath = join(own, 'acme-cert.pem');
  const storage = join(own, 'caddy');
  const caddyfile = caddyfileOf(sites, {
    directoryUrl: acme.directoryUrl,
    apiCertificatePath,
    storage,
    ports: INSTANCE,
  });
  const startMs = performance.now();
  await using caddy = await startCaddy(own, caddyfile);
  const root = await acme.readRoot();
  const rootPath = join(own, 'root.pem');
  await writeFile(rootPath, root);
  const gateway = { address, https: GATEWAY.https };
  for (const { host, challenge, answer } of sites) {
    await until(
      `a certificate by ${challenge}`,
      SOON_MS,
      async () => (await findIssuer(gateway, host, root)) !== undefined,
    );
    assert.match((await findIssuer(gateway, host, root))!, /^Pebble Intermediate CA/);
    assert.equal(await readPage(gateway, host, rootPath), answer);
  }
  say(
    `${dataPlane}: both certificates after ${Math.round(performance.now() - startMs)} ms, verified to the root`,
  );
  assert.deepEqual(listProven(await readFile(caddy.log, 'utf8')), ['http-01', 'tls-alpn-01']);
}

const directory = await mkdtemp(join(tmpdir(), 'skerry-certificates-'));
try {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  for (const dataPlane of ['native', 'typescript', 'haproxy']) await scenario(directory, dataPlane);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
