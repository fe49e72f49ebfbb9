import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLock, type LockPackages, listBundled, withOverrides } from './lock.ts';

/** A workspace `app` that needs `fast`, of which the top has another version for development, and native code where it runs. */
const REPOSITORY: LockPackages = {
  app: {
    version: '1.0.0',
    dependencies: { fast: '2.0.0', own: '1.0.0' },
    optionalDependencies: { native: '3.0.0' },
  },
  'app/node_modules/fast': { version: '2.0.0', dependencies: { deep: '^1.0.0' } },
  'node_modules/deep': { version: '1.4.0' },
  'node_modules/fast': { version: '1.0.0', dev: true },
  'node_modules/native': {
    version: '3.0.0',
    dependencies: { glue: '^1.0.0' },
    peerDependencies: { absent: '*' },
  },
  'node_modules/glue': { name: '@scope/glue', version: '1.1.0' },
  'node_modules/own': { link: true },
};
const MANIFEST = { name: 'app', version: '1.0.0', description: 'an application' };

describe('the lockfile of a package', () => {
  test('has what was tested, where the package finds it, and where npm gets it', () => {
    const { packages } = createLock(MANIFEST, ['app'], REPOSITORY, {
      'node_modules/own': { version: '1.0.0' },
    });
    const { '': root, ...others } = packages as LockPackages;
    assert.equal(root, MANIFEST);
    assert.deepEqual(
      Object.entries(others).map(([at, { version, resolved }]) => [at, version, resolved]),
      [
        ['node_modules/deep', '1.4.0', 'https://registry.npmjs.org/deep/-/deep-1.4.0.tgz'],
        ['node_modules/fast', '2.0.0', 'https://registry.npmjs.org/fast/-/fast-2.0.0.tgz'],
        ['node_modules/glue', '1.1.0', 'https://registry.npmjs.org/@scope/glue/-/glue-1.1.0.tgz'],
        ['node_modules/native', '3.0.0', 'https://registry.npmjs.org/native/-/native-3.0.0.tgz'],
        ['node_modules/own', '1.0.0', undefined],
      ],
    );
  });

  test('two versions at one place are refused', () => {
    const two = { ...REPOSITORY, b: { dependencies: { fast: '1.0.0' } } };
    assert.throws(() => createLock(MANIFEST, ['app', 'b'], two, {}), /node_modules\/fast: (1|2)\.0\.0 and/);
  });

  test('native code and what it alone needs is not bundled', () => {
    assert.deepEqual(listBundled(REPOSITORY, ['app']), ['app/node_modules/fast', 'node_modules/deep']);
  });

  test('overrides of a package are written into what it depends on', () => {
    const overrides = { fast: { deep: 'npm:shallow@1.0.0', other: '1.0.0' }, deep: '2.0.0' };
    assert.deepEqual(withOverrides('fast', { deep: '^1.0.0' }, overrides), { deep: 'npm:shallow@1.0.0' });
    assert.deepEqual(withOverrides('slow', { deep: '^1.0.0' }, overrides), { deep: '^1.0.0' });
  });
});
