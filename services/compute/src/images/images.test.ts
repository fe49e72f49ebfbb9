import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { guestFiles } from './guest-files.ts';
import { guestLinks } from './guest-links.ts';
import { listInLoadOrder, parseModulesDep } from './modules-dep.ts';
import { parseBootstrapLine } from './progress.ts';
import { aptSources, findRecipe, imageDirectoryName, recipeKey } from './recipe.ts';
import { ImageStore } from './store.ts';

const mirrors = {
  debianMirror: 'http://mirror.example/debian',
  debianSecurityMirror: 'http://mirror.example/security',
  ubuntuMirror: 'http://mirror.example/ubuntu',
  ubuntuSecurityMirror: 'http://mirror.example/ubuntu-security',
};
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

describe('modules.dep', () => {
  const text =
    'kernel/d.ko: kernel/c.ko kernel/b.ko kernel/a.ko\nkernel/c.ko: kernel/b.ko kernel/a.ko\nkernel/b.ko: kernel/a.ko\nkernel/a.ko:\n';

  test('a module comes after all that it needs, each once', () => {
    assert.deepEqual(listInLoadOrder(parseModulesDep(text), ['kernel/d.ko', 'kernel/c.ko']), [
      'kernel/a.ko',
      'kernel/b.ko',
      'kernel/c.ko',
      'kernel/d.ko',
    ]);
  });

  test('a module that the kernel does not have is an error; a circle is not an endless loop', () => {
    assert.throws(() => listInLoadOrder(parseModulesDep(text), ['kernel/e.ko']), isError('INTERNAL'));
    const circle = parseModulesDep('a: b\nb: a\n');
    assert.deepEqual(listInLoadOrder(circle, ['a']).sort(), ['a', 'b']);
  });
});

describe('recipes', () => {
  test('an unknown name is refused with the names there are', () => {
    assert.throws(
      () => findRecipe('debian:3', mirrors),
      (error) => isError('UNKNOWN_IMAGE')(error) && /debian:12/.test((error as Error).message),
    );
  });

  test('the key names the content: equal for equal recipes, different for any change, and not for other settings', () => {
    const recipe = findRecipe('debian:12', mirrors);
    assert.equal(recipeKey(findRecipe('debian:12', { ...mirrors, port: 1 } as never)), recipeKey(recipe));
    assert.notEqual(recipeKey({ ...recipe, packages: [...recipe.packages, 'vim'] }), recipeKey(recipe));
    assert.notEqual(recipeKey({ ...recipe, mirror: 'http://other.example/debian' }), recipeKey(recipe));
    assert.match(imageDirectoryName(recipe), /^debian-12-[0-9a-f]{12}$/);
  });

  test('updates and security updates are part of the sources', () => {
    const sources = aptSources(findRecipe('debian:12', mirrors));
    assert.match(sources, /^deb http:\/\/mirror\.example\/debian bookworm main$/m);
    assert.match(sources, /^deb http:\/\/mirror\.example\/debian bookworm-updates main$/m);
    assert.match(sources, /^deb http:\/\/mirror\.example\/security bookworm-security main$/m);
    const ubuntu = aptSources(findRecipe('ubuntu', mirrors));
    assert.match(ubuntu, /^URIs: http:\/\/mirror\.example\/ubuntu\nSuites: noble noble-updates$/m);
    assert.match(ubuntu, /^URIs: http:\/\/mirror\.example\/ubuntu-security\nSuites: noble-security$/m);
    // The key, in the form of deb822(5): no line of it may end the stanza.
    assert.match(ubuntu, /^Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n \.\n(?: \S+\n)+\n?/m);
  });

  test('ubuntu is its long-term release; each name is one image', () => {
    const name = imageDirectoryName(findRecipe('ubuntu', mirrors));
    assert.equal(name, imageDirectoryName(findRecipe('ubuntu:24.04', mirrors)));
    const others = ['debian:12', 'debian:13'].map((one) => imageDirectoryName(findRecipe(one, mirrors)));
    assert.equal(new Set([name, ...others]).size, 3);
  });
});

test('progress only rises through the words of a real build', () => {
  const lines = [
    'I: running apt-get update...',
    'I: downloading packages with apt...',
    'I: something else',
    'I: extracting archives...',
    'I: installing remaining packages inside the chroot...',
  ];
  const percents = lines.flatMap((line) => parseBootstrapLine(line)?.percent ?? []);
  assert.equal(percents.length, 4);
  assert.deepEqual(
    percents,
    percents.toSorted((one, other) => one - other),
  );
});

test('files and links of the guest are absolute, and none is laid over another', () => {
  const paths = [...guestFiles(), ...guestLinks()].map(({ path }) => path);
  assert.equal(new Set(paths).size, paths.length);
  for (const path of paths) assert.match(path, /^\/[a-z]+\/[^\0]+$/);
});

test('a build that fails leaves nothing that passes for an image, says why, and a later call tries again', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'skerry-images-'));
  try {
    const store = new ImageStore({
      cacheDir,
      // A port that nothing listens on: refused at once.
      mirrors: { ...mirrors, debianMirror: 'http://127.0.0.1:9/debian' },
      log: createLogger('test', 'silent'),
      signal: AbortSignal.abort(new Error('stopped')),
    });
    for (let attempt = 0; attempt < 2; attempt++)
      await assert.rejects(
        store.ensure('debian:12', () => {}),
        /stopped/,
      );
    assert.equal(await store.find('debian:12'), undefined);
    await assert.rejects(
      store.ensure('windows:95', () => {}),
      isError('UNKNOWN_IMAGE'),
    );
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});
