import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCaddy } from '../../apps/cli/src/testing/acme.ts';
import { until } from '../../services/compute/src/testing/wait.ts';
import { startCore } from '../release/testing/parts.ts';
import { ROOT } from '../source.ts';

const HTTPS_PORT = 24443;
const HTTP_PORT = 24480;
const SOON_MS = 60_000;
const COMMAND = join(ROOT, 'apps/cli/bin/skerry.js');

test("the core API behind TLS, with the gateway guide's own Caddyfile and settings", async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'skerry-tls-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }));
  const guide = readFileSync(join(ROOT, 'docs/guides/gateway.md'), 'utf8');
  const [, section = ''] = guide.split('## The core API behind TLS\n');
  const [, site = ''] = /^```\n([\s\S]*?)^```$/m.exec(section) ?? [];
  const [, settings = ''] = /^```ini\n([\s\S]*?)^```$/m.exec(section) ?? [];
  assert.match(site, /reverse_proxy/);
  assert.match(settings, /^SKERRY_CORE_TRUSTED_PROXIES=/m);
  const variables = settings.trim().split('\n');
  const given = Object.fromEntries(variables.map((line) => line.split('=') as [string, string]));
  const env = { PATH: process.env.PATH, HOME: home, SKERRY_HOME: home, ...given };
  await using core = await startCore(process.execPath, COMMAND, env);

  // Caddy signs this name by itself.
  const own = site.replace('core.example.org', 'localhost').replace('127.0.0.1:4024', new URL(core.url).host);
  const storage = join(home, 'caddy');
  const options = ['admin off', 'skip_install_trust', `storage file_system ${storage}`];
  const ports = [`http_port ${HTTP_PORT}`, `https_port ${HTTPS_PORT}`];
  await using _caddy = await startCaddy(home, `{\n${[...options, ...ports].join('\n')}\n}\n${own}`);
  const root = join(storage, 'pki/authorities/local/root.crt');
  const url = `https://localhost:${HTTPS_PORT}`;
  const curl = () => {
    if (!existsSync(root)) return '';
    try {
      return execFileSync('curl', ['--silent', '--cacert', root, `${url}/health`], { encoding: 'utf8' });
    } catch {
      return '';
    }
  };
  await until('the node answers through the proxy', SOON_MS, () => curl().startsWith('{"status":"'));

  const skerry = (...args: string[]) =>
    execFileSync(process.execPath, [COMMAND, ...args], {
      env: { ...env, NODE_EXTRA_CA_CERTS: root },
      encoding: 'utf8',
    }).trim();
  skerry('key', 'new');
  const content = '{"type":"note","content":{"text":"behind TLS"}}';
  const hash = skerry('message', 'post', '--content', content, '--core', url);
  assert.match(skerry('message', 'get', hash, '--core', url), /behind TLS/);
});
