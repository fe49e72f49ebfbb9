import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { DAEMONS } from '../daemons.ts';
import { renderChangelog, renderCopyright } from './documents.ts';
import { settingsOf, unitOf } from './layout.ts';
import { describePackages, renderControl } from './packages.ts';

const VERSION = '1.2.3';
const PACKAGES = describePackages(VERSION, '2.36');

describe('Debian packages', () => {
  test('each daemon has its unit and its settings in one of them', () => {
    const paths = PACKAGES.flatMap(({ files }) => files.map(({ path }) => path));
    assert.equal(new Set(paths).size, paths.length);
    for (const { name } of DAEMONS) {
      assert.ok(paths.some((path) => path.endsWith(`/${unitOf(name)}`)));
      assert.ok(paths.includes(settingsOf(name)));
    }
  });

  test("what is below /etc is an operator's to change", () => {
    for (const { files, conffiles } of PACKAGES)
      assert.deepEqual(
        files.map(({ path }) => path).filter((path) => path.startsWith('/etc/')),
        conffiles,
      );
  });

  test('nothing depends on what every Debian has', () => {
    const names = PACKAGES.flatMap(({ depends }) => depends.map((one) => one.split(' ')[0]!));
    const fields = execFileSync('dpkg-query', ['-W', '-f', `\${Package} \${Essential}\n`], {
      encoding: 'utf8',
    });
    const essential = new Set([...fields.matchAll(/^(\S+) yes$/gm)].map(([, name]) => name));
    assert.ok(essential.has('dpkg'));
    assert.deepEqual(
      names.filter((name) => essential.has(name)),
      [],
    );
  });

  test('scripts are for the plain shell, and an install starts nothing', () => {
    for (const { scripts } of PACKAGES)
      for (const script of Object.values(scripts)) {
        execFileSync('sh', ['-n'], { input: script });
        assert.doesNotMatch(script, /systemctl[^\n]* (start|enable|restart|unmask)\b/);
      }
  });

  test('every daemon passes through what is above its directories, whatever root did before its first start', () => {
    for (const { scripts } of PACKAGES)
      assert.match(
        scripts.postinst,
        /= configure \]; then\n(?: +#.*\n)? +install --directory --mode 0755 \/var\/lib\/skerry \/var\/cache\/skerry\n/,
      );
  });

  test('the control file is one paragraph, with every line of the description set in', () => {
    for (const one of PACKAGES) {
      const text = renderControl(one, { version: VERSION, architecture: 'amd64', sizeKib: 10 });
      assert.match(text, /^Package: .*\n(?:[A-Z][\w-]*: .+\n)+(?: \S.*\n)+$/);
      assert.ok(text.split('\n').every((line) => !line.startsWith(' ') || line.length <= 80));
    }
  });

  test('copyright and changelog are as Debian reads them', () => {
    assert.match(
      renderChangelog('skerry', VERSION, 1_700_000_000),
      /^skerry \(1\.2\.3\) stable; urgency=medium\n\n {2}\* .+\n\n -- .+ <.+> {2}Tue, 14 Nov 2023 22:13:20 \+0000\n$/,
    );
    const text = renderCopyright('One.\n\nTwo.\n', true, 2026);
    assert.match(text, /^Copyright: 2026 /m);
    assert.match(text, /\nLicense: Skerry\n One\.\n \.\n Two\.\n\nFiles: /);
  });
});
