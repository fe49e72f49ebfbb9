import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { parseControls } from './base.ts';
import { addLayer, finishLayout, type ImageDescription } from './oci.ts';

/** Costs less than one CPU second. */

const DIRECTORY = mkdtempSync(join(tmpdir(), 'skerry-oci-'));
after(() => rmSync(DIRECTORY, { recursive: true }));
const IMAGE: ImageDescription = {
  name: 'localhost/example:1.2.3',
  architecture: 'amd64',
  epoch: 1_700_000_000,
  user: '10001:10001',
  environment: { PATH: '/bin' },
  entrypoint: ['/bin/example'],
  command: ['--help'],
  workingDirectory: '/state',
  volumes: ['/state'],
  labels: { 'org.opencontainers.image.version': '1.2.3' },
};
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations: Readonly<Record<string, string>>;
}

async function build(name: string) {
  const layout = join(DIRECTORY, name);
  const tar = join(DIRECTORY, 'layer.tar');
  writeFileSync(join(DIRECTORY, 'file'), 'content\n');
  const same = ['--mtime=@0', '--owner=0', '--group=0'];
  execFileSync('tar', ['--create', ...same, '--file', tar, '--directory', DIRECTORY, 'file']);
  const layer = await addLayer(layout, tar, 'a test');
  const digest = finishLayout(layout, IMAGE, [layer]);
  const blob = (one: string) => readFileSync(join(layout, 'blobs', one.replace(':', '/')));
  return { layout, tar, digest, blob, json: (one: string): unknown => JSON.parse(blob(one).toString()) };
}

describe('an OCI layout', () => {
  test('names everything by the hash of its bytes, from the index down to the files of a layer', async () => {
    const { layout, tar, digest, blob, json } = await build('first');
    const read = (name: string): unknown => JSON.parse(readFileSync(join(layout, name), 'utf8'));
    assert.deepEqual(read('oci-layout'), { imageLayoutVersion: '1.0.0' });
    const { manifests } = read('index.json') as { manifests: Descriptor[] };
    assert.equal(manifests.length, 1);
    assert.equal(manifests[0]!.digest, digest);
    assert.equal(manifests[0]!.annotations['org.opencontainers.image.ref.name'], IMAGE.name);
    const manifest = json(digest) as { config: Descriptor; layers: Descriptor[] };
    const named = [manifests[0]!, manifest.config, ...manifest.layers];
    for (const { digest: one, size } of named) {
      assert.equal(one, `sha256:${hashOf(blob(one))}`);
      assert.equal(size, blob(one).length);
    }
    assert.equal(readdirSync(join(layout, 'blobs/sha256')).length, named.length);
    const config = json(manifest.config.digest) as {
      rootfs: { diff_ids: string[] };
      config: { User: string; Volumes: object };
    };
    const plain = gunzipSync(blob(manifest.layers[0]!.digest));
    assert.deepEqual(plain, readFileSync(tar));
    assert.deepEqual(config.rootfs.diff_ids, [`sha256:${hashOf(plain)}`]);
    assert.deepEqual([config.config.User, config.config.Volumes], ['10001:10001', { '/state': {} }]);
  });

  test('is the same when it is made again', async () => {
    assert.equal((await build('one')).digest, (await build('two')).digest);
  });
});

test("Debian's control files are read for what a bill of materials says", () => {
  const text =
    'Package: a\nVersion: 1:2-3\nArchitecture: amd64\nDescription: x\n Package: no\nPackage: b\nArchitecture: all\nVersion: 4\n';
  assert.deepEqual(parseControls(text), [
    { name: 'a', version: '1:2-3', architecture: 'amd64' },
    { name: 'b', version: '4', architecture: 'all' },
  ]);
});
