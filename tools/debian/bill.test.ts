import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { listInside, renderBill } from './bill.ts';

test('a bill of materials names what is inside, each version once, and what Debian installs with it', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'skerry-bill-'));
  t.after(() => rmSync(root, { recursive: true }));
  const put = (path: string, manifest: object) => {
    const to = join(root, 'usr/lib/skerry', path, 'package.json');
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, JSON.stringify(manifest));
  };
  put('.', { name: 'skerry', version: '1.0.0' });
  put('node_modules/@skerry/kit', { name: '@skerry/kit', version: '1.0.0' });
  put('node_modules/pino', { name: 'pino', version: '9.0.0', license: 'MIT' });
  put('node_modules/pino/esm', { type: 'module' });
  put('node_modules/fastify/node_modules/pino', { name: 'pino', version: '9.0.0', license: 'MIT' });
  put('node_modules/other/node_modules/pino', { name: 'pino', version: '8.0.0', license: 'MIT' });
  const inside = listInside(root);
  assert.deepEqual(
    inside.map(({ name, version }) => `${name} ${version}`),
    ['@skerry/kit 1.0.0', 'pino 8.0.0', 'pino 9.0.0'],
  );

  const one = { name: 'skerry', summary: 'a cloud', depends: ['libc6 (>= 2.36)', 'systemd | sysusers'] };
  const made = { version: '1.0.0', architecture: 'amd64', epoch: 0 };
  const bill = renderBill(one, made, inside) as {
    metadata: { component: { purl: string } };
    components: { purl: string; scope?: string }[];
  };
  assert.equal(bill.metadata.component.purl, 'pkg:deb/skerry@1.0.0?arch=amd64');
  assert.deepEqual(
    bill.components.map(({ purl, scope = 'inside' }) => `${purl} ${scope}`),
    [
      'pkg:npm/%40skerry/kit@1.0.0 inside',
      'pkg:npm/pino@8.0.0 inside',
      'pkg:npm/pino@9.0.0 inside',
      'pkg:deb/debian/libc6 excluded',
      'pkg:deb/debian/systemd excluded',
      'pkg:deb/debian/sysusers excluded',
    ],
  );
  assert.deepEqual(renderBill(one, made, inside), bill);
});
