import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { packagePath, renameReferences, renameSource } from './references.ts';

const isSource = (path: string) => ['src/main.ts', 'src/pool/worker.ts', 'src/pool/pool.ts'].includes(path);
const rename = (path: string, text: string, isDeclaration = false) =>
  renameReferences({ path, text, isDeclaration }, isSource);

describe('what a package names', () => {
  test('sources are compiled, and lie in dist; other files stay what they are', () => {
    const paths = ['src/a/b.ts', 'src/a/b.sql', 'native/main.c', 'bin/skerry.js', 'src/x.d.ts'];
    assert.deepEqual(paths.map(packagePath), [
      'dist/a/b.js',
      'dist/a/b.sql',
      'native/main.c',
      'bin/skerry.js',
      'dist/x.d.ts',
    ]);
  });

  test('a worker that is named by a URL is named by what it became', () => {
    const text = "new Worker(new URL('./worker.ts', import.meta.url), { name: 'worker' }); // './worker.ts'";
    assert.equal(
      rename('src/pool/pool.ts', text),
      "new Worker(new URL('./worker.js', import.meta.url), { name: 'worker' }); // './worker.ts'",
    );
  });

  test('a program outside of the sources finds them', () => {
    assert.equal(
      rename('bin/skerry.js', "await import('../src/main.ts');"),
      "await import('../dist/main.js');",
    );
  });

  test('declarations name declarations, also inside of types', () => {
    const text = 'export * from "./worker.ts";\nexport type Main = import("../main.ts").Main;\n';
    assert.equal(
      rename('src/pool/pool.ts', text, true),
      "export * from './worker.js';\nexport type Main = import('../main.js').Main;\n",
    );
  });

  test('a name that would be looked for in vain fails the release', () => {
    assert.throws(
      () => rename('src/main.ts', "new URL('./worker.ts', import.meta.url)"),
      /names \.\/worker\.ts/,
    );
    assert.throws(
      () => rename('src/main.ts', 'join(dir, `worker.ts`)'),
      /puts the name of a source together/,
    );
  });

  test('a source map names the one source that is inside it', () => {
    const map = JSON.stringify({ sources: ['../../../../packages/kit/src/net/a.ts'], sourcesContent: ['1'] });
    assert.deepEqual(JSON.parse(renameSource(map, 'src/net/a.ts')), {
      sources: ['../../src/net/a.ts'],
      sourcesContent: ['1'],
    });
  });
});
