import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The launcher on a machine that has an old Node and no libatomic1, as a minimal Debian: a view of this machine without it. */

const LAUNCHER = fileURLToPath(new URL('../bin/node.js', import.meta.url));
const OLD_NODE = '/usr/bin/node';

const versionOf = (node: string) => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? '';
const canPlay =
  process.geteuid?.() === 0 &&
  existsSync('/etc/debian_version') &&
  existsSync(OLD_NODE) &&
  Number(/^v(\d+)/.exec(versionOf(OLD_NODE))?.[1] ?? 99) < 24;
const SKIP = { skip: canPlay ? false : 'needs root, Debian and an old Node of the machine' };

/** Changes of /usr and /var go to a layer that ends with the namespace; the package is taken out there. */
const WITHOUT_LIBRARY = `
  set -e
  mount -t tmpfs layers "$1"
  for dir in usr var; do
    mkdir -p "$1/$dir/upper" "$1/$dir/work"
    mount -t overlay -o "lowerdir=/$dir,upperdir=$1/$dir/upper,workdir=$1/$dir/work" overlay "/$dir"
  done
  dpkg --remove --force-all libatomic1 >/dev/null 2>&1
  shift
  exec "$@"
`;

function launch(t: TestContext, settings: Record<string, string>) {
  const layers = mkdtempSync(join(tmpdir(), 'skerry-launcher-'));
  t.after(() => rmSync(layers, { recursive: true, force: true }));
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    ['--mount', 'sh', '-c', WITHOUT_LIBRARY, 'sh', layers, OLD_NODE, LAUNCHER, '--version'],
    { encoding: 'utf8', env: { ...process.env, ...settings } },
  );
  return { status, stdout, stderr };
}

test(
  'F10: where the library of the bundled Node is missing and nothing may be installed, one sentence says so',
  SKIP,
  (t) => {
    const { status, stdout, stderr } = launch(t, { SKERRY_COMPUTE_INSTALL_PACKAGES: 'no' });
    assert.equal(
      stderr,
      'skerry needs the library libatomic.so.1, which is not on this computer; on Debian: sudo apt-get install libatomic1\n',
    );
    assert.deepEqual([status, stdout], [1, '']);
  },
);

test(
  'F10: as root on Debian the launcher says that it installs the library, does so, and goes on',
  SKIP,
  (t) => {
    const { status, stdout, stderr } = launch(t, { SKERRY_COMPUTE_INSTALL_PACKAGES: 'yes' });
    assert.match(
      stderr,
      /^skerry: installing what Node needs: apt-get install --no-install-recommends libatomic1 /,
    );
    const { version } = createRequire(import.meta.url)(`node-linux-${process.arch}/package.json`) as {
      version: string;
    };
    assert.deepEqual([status, stdout], [0, `v${version}\n`], stderr);
  },
);
