import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { guestFiles } from './guest-files.ts';
import { guestLinks } from './guest-links.ts';
import { lockNameOf } from './image.ts';
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

/** A store whose mirror is there and has nothing. */
async function openStore(signal: AbortSignal) {
  const cacheDir = await mkdtemp(join(tmpdir(), 'skerry-images-'));
  const server = createServer((_request, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}/debian`;
  const empty = { ...mirrors, debianMirror: mirror, debianSecurityMirror: mirror };
  return {
    ...{ cacheDir, mirror, recipe: findRecipe('debian:12', empty) },
    store: new ImageStore({ cacheDir, mirrors: empty, log: createLogger('test', 'silent'), signal }),
    async [Symbol.asyncDispose]() {
      server.close();
      await rm(cacheDir, { recursive: true, force: true });
    },
  };
}

test('a build that fails leaves nothing that passes for an image, says why, and a later call tries again', async () => {
  await using room = await openStore(new AbortController().signal);
  const { store, cacheDir, mirror } = room;
  for (let attempt = 0; attempt < 2; attempt++) {
    const steps: string[] = [];
    // The tool's own words: on a machine that may not build at all, those.
    const why = /: .*(?:does not have a Release file|not permitted|no such file)/i;
    await assert.rejects(
      store.ensure('debian:12', ({ message }) => steps.push(message)),
      (error: AppError) =>
        isError('IMAGE_UNAVAILABLE')(error) &&
        error.message.startsWith(`debian:12 cannot be built from the packages of ${mirror} `) &&
        why.test(error.message),
    );
    assert.ok(steps.includes(`building from ${mirror}`), `${attempt}: ${steps}`);
    const left = await readdir(join(cacheDir, 'images'));
    assert.deepEqual(left, [lockNameOf(imageDirectoryName(room.recipe))]);
  }
  assert.equal(await store.find('debian:12'), undefined);
  await assert.rejects(
    store.ensure('windows:95', () => {}),
    isError('UNKNOWN_IMAGE'),
  );
});

test('a store that is stopped begins no build, and rejects with why it was stopped', async () => {
  await using room = await openStore(AbortSignal.abort(new Error('stopped')));
  await assert.rejects(
    room.store.ensure('debian:12', () => {}),
    { message: 'stopped' },
  );
  assert.deepEqual(await readdir(room.cacheDir), []);
});
