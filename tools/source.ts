import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GROUPS = ['packages', 'services', 'apps'];

export interface Package {
  readonly name: string;
  /** Relative to the root. */
  readonly dir: string;
  readonly dependencies: readonly string[];
}

export interface SourceFile {
  /** Relative to the root. */
  readonly path: string;
  readonly package: Package;
  readonly text: string;
  readonly isTest: boolean;
  /** What it imports or re-exports, types included, as written. */
  readonly specifiers: readonly string[];
  /** Names of values that it makes and exports. */
  readonly exports: readonly string[];
  /** Names that it exports of other files, types included. */
  readonly passedOn: readonly string[];
  /** Of the specifiers, which names are taken from each; undefined for all of them. */
  readonly taken: readonly { readonly specifier: string; readonly name: string | undefined }[];
}

export function readPackage(dir: string): Package {
  const json = JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8')) as Record<
    string,
    Record<string, string> | undefined
  > & {
    name: string;
  };
  const kinds = ['dependencies', 'optionalDependencies', 'devDependencies', 'peerDependencies'];
  return { name: json.name, dir, dependencies: kinds.flatMap((kind) => Object.keys(json[kind] ?? {})) };
}

export const ROOT_PACKAGE: Package = { ...readPackage('.'), dir: 'tools' };

function readPackages(): Package[] {
  const grouped = GROUPS.flatMap((group) => readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`));
  return [...grouped, 'devnet', 'contracts'].map(readPackage);
}

/** Every workspace of the repository. */
export const PACKAGES: readonly Package[] = readPackages();

function listTypeScript(dir: string): string[] {
  return readdirSync(join(ROOT, dir), { withFileTypes: true, recursive: true })
    .filter(
      (entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.parentPath.includes('node_modules'),
    )
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

function readSource(path: string, owner: Package): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const { module } = parseSync(path, text);
  const dynamic = module.dynamicImports.flatMap(
    (one) => /^(['"`])(.*)\1$/.exec(text.slice(one.moduleRequest.start, one.moduleRequest.end))?.[2] ?? [],
  );
  const specifiers = [
    ...module.staticImports.map((one) => one.moduleRequest.value),
    ...module.staticExports.flatMap((one) =>
      one.entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
    ),
    ...dynamic,
  ];
  const taken = [
    ...module.staticImports.flatMap((one) =>
      one.entries.map((entry) => ({
        specifier: one.moduleRequest.value,
        name: entry.importName.kind === 'Default' ? 'default' : (entry.importName.name ?? undefined),
      })),
    ),
    ...module.staticExports.flatMap((one) =>
      one.entries.flatMap(({ moduleRequest, importName }) =>
        moduleRequest ? [{ specifier: moduleRequest.value, name: importName.name ?? undefined }] : [],
      ),
    ),
    ...dynamic.map((specifier) => ({ specifier, name: undefined })),
  ];
  const exports = module.staticExports.flatMap((one) =>
    one.entries.flatMap((entry) =>
      entry.moduleRequest || entry.isType ? [] : [entry.exportName.name ?? 'default'],
    ),
  );
  const passedOn = module.staticExports.flatMap((one) =>
    one.entries.flatMap(({ moduleRequest, exportName }) =>
      moduleRequest && exportName.name ? [exportName.name] : [],
    ),
  );
  const isTest = /\.test\.ts$|\/testing\//.test(path);
  return {
    path,
    package: owner,
    text,
    isTest,
    specifiers: [...new Set(specifiers)],
    exports,
    passedOn,
    taken,
  };
}

export function listSources(): SourceFile[] {
  const tools: [string, Package][] = ['tools', 'bench'].flatMap((dir) =>
    listTypeScript(dir).map((path): [string, Package] => [path, ROOT_PACKAGE]),
  );
  const all = PACKAGES.flatMap((owner) =>
    listTypeScript(owner.dir).map((path): [string, Package] => [path, owner]),
  );
  return [...all, ...tools].map(([path, owner]) => readSource(path, owner));
}

/** `@scope/name/sub` -> `@scope/name`; `name/sub` -> `name` */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The file that a relative specifier means, relative to the root. */
export function resolveRelative(from: SourceFile, specifier: string): string {
  return relative(ROOT, resolve(ROOT, dirname(from.path), specifier));
}

/** The functions of a file that are longer than so many lines, as `path:line (lines)`. */
export function listLongFunctions({ path, text }: SourceFile, maxLines: number): string[] {
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length;
  const found: string[] = [];
  const measure = ({ start, end }: { readonly start: number; readonly end: number }) => {
    const [first, last] = [lineOf(start), lineOf(end)];
    if (last - first + 1 > maxLines) found.push(`${path}:${first} (${last - first + 1} lines)`);
  };
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(path, text).program);
  return found;
}

type JsonNode = Readonly<Record<string, unknown>> & { readonly type: string; readonly start: number };

/** What stands for a value that only the program knows. */
const VALUE = 'VALUE';

/** The text of an expression, as far as it is written down: also where a function puts it into another text. */
function wordsOf(node: JsonNode): string {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : VALUE;
  if (node.type === 'TemplateLiteral') {
    const parts = node.quasis as readonly { readonly value: { readonly cooked: string | null } }[];
    const values = node.expressions as readonly JsonNode[];
    return parts.map(({ value }, at) => `${value.cooked}${values[at] ? wordsOf(values[at]) : ''}`).join('');
  }
  const { type } = (node.callee ?? {}) as { readonly type?: string };
  if (node.type !== 'CallExpression' || type !== 'Identifier') return VALUE;
  return (node.arguments as readonly JsonNode[]).map(wordsOf).find((words) => words !== '') ?? VALUE;
}

/** All texts of a file. */
export function listTexts({ path, text }: SourceFile): string[] {
  const found: string[] = [];
  const note = (node: unknown) => void found.push(wordsOf(node as JsonNode));
  new Visitor({ Literal: note, TemplateLiteral: note }).visit(parseSync(path, text).program);
  return found;
}

/** The call of `JSON.parse`, or of a response's `json`, that an expression is the value of. */
function isJsonCall(node: JsonNode): boolean {
  const inner = (node.expression ?? node.argument ?? node.left) as JsonNode | undefined;
  if (/^(ParenthesizedExpression|AwaitExpression|LogicalExpression|TSAsExpression)$/.test(node.type))
    return isJsonCall(inner!);
  if (node.type !== 'CallExpression') return false;
  const { object, property } = node.callee as { object?: { name?: string }; property?: { name?: string } };
  const isParse = property?.name === 'parse' && object?.name === 'JSON';
  return isParse || (property?.name === 'json' && (node.arguments as unknown[]).length === 0);
}

const isUnknown = (annotation: unknown) =>
  /^TSUnknownKeyword$/.test((annotation as JsonNode | null | undefined)?.type ?? '');

/** Where a file takes parsed JSON for something that nobody has looked whether it is, as `path:line`. */
export function listJsonCasts({ path, text }: SourceFile): string[] {
  const found = new Set<string>();
  const note = ({ start }: { readonly start: number }) =>
    found.add(`${path}:${text.slice(0, start).split('\n').length}`);
  new Visitor({
    TSAsExpression(node) {
      if (isJsonCall(node.expression as never) && !isUnknown(node.typeAnnotation)) note(node);
    },
    VariableDeclarator(node) {
      const annotation = node.id.typeAnnotation?.typeAnnotation;
      if (node.init && isJsonCall(node.init as never) && node.init.type !== 'TSAsExpression')
        if (!isUnknown(annotation)) note(node);
    },
    MemberExpression(node) {
      if (isJsonCall(node.object as never) && node.object.type !== 'TSAsExpression') note(node);
    },
  }).visit(parseSync(path, text).program);
  return [...found];
}
