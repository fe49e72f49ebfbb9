import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { CHECKSUMS, SIGNATURE } from '@skerry/console';
import { serveChanged, serveConsole } from '../../apps/cli/src/testing/console/served.ts';
import { skerryHere } from '../../apps/cli/src/testing/here.ts';
import { releaseConsole } from './console.ts';
import { writeChecksums } from './release.ts';
import { signChecksums } from './sign.ts';

const home = mkdtempSync(join(tmpdir(), 'skerry-console-'));
const key = generatePrivateKey();
const { address } = createSigner(key);

/** What a reader needs of a release: what is in it, who says so, and the list of the console's files. */
async function handOut(): Promise<string> {
  const release = { files: join(home, 'release'), staged: join(home, 'npm'), epoch: 0 };
  const [, list] = await releaseConsole(release);
  writeFileSync(join(home, 'key'), key);
  writeChecksums(release);
  signChecksums(release, join(home, 'key'));
  const folder = join(home, 'fetched');
  mkdirSync(folder);
  for (const name of [CHECKSUMS, SIGNATURE, list!])
    copyFileSync(join(release.files, name), join(folder, name));
  return folder;
}

/** 2 CPU seconds. */
test("the console that a core node serves is compared with a release, by its maker's signature", async (t) => {
  t.after(() => rmSync(home, { recursive: true }));
  const folder = await handOut();
  await using console = await serveConsole();
  using node = await serveChanged(console.told.url);
  const check = async (by: string, release = folder) => {
    const args = ['console', '--check', '--json', '--core', node.core, '--release', release, '--by', by];
    const { code, out, err } = await skerryHere(process.env, args);
    return { exit: code, ...JSON.parse(out || err) };
  };

  const same = await check(address);
  assert.deepEqual([same.exit, same.is_same, same.build], [0, true, console.told.build]);
  assert.equal(same.signed_by, address);
  // The page names a script of its own: it is another page, whatever else is served.
  node.change = (body) =>
    Buffer.from(body.toString('latin1').replace('src="console/', 'src="consolE/'), 'latin1');
  const changed = await check(address);
  assert.deepEqual([changed.exit, changed.differing], [1, [{ path: 'index.html', is: 'different' }]]);
  node.change = (body) => body;

  const stranger = createSigner(generatePrivateKey()).address;
  assert.equal((await check(stranger)).code, 'INVALID_SIGNATURE');
  assert.equal((await check(address, home)).code, 'INVALID_PARAMETERS');
  const list = join(folder, same.list);
  const text = readFileSync(list, 'utf8');
  writeFileSync(
    list,
    text.replace(/[0-9]/, (digit) => (digit === '1' ? '2' : '1')),
  );
  assert.equal((await check(address)).code, 'FILE_CORRUPT');
  // Who changes the list, and says so in the checksums, has no signature of them.
  writeFileSync(list, text);
  appendFileSync(join(folder, CHECKSUMS), `${'0'.repeat(64)}  other.tgz\n`);
  assert.equal((await check(address)).code, 'INVALID_SIGNATURE');
});
