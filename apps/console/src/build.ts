import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildOptions, build, Metafile, OutputFile } from 'esbuild';
import { PAGE_FILE } from './files.ts';
import { buildOf } from './hashes.ts';

/** The browser's sources: they are bundled, and not part of a package. */
const PAGE = fileURLToPath(new URL('../page', import.meta.url));
/** Where everything but the page itself is, below it. */
const FOLDER = 'console';

export interface Build {
  /** By path below the page's address. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Those that a browser loads before it shows the first view. */
  readonly first: readonly string[];
  /** Every source that went into it. */
  readonly sources: readonly string[];
}

/** Threads of their own; the page finds the file of each under `NAME_URL`. */
const WORKERS = ['verifier', 'live', 'signing'] as const;

const OPTIONS = {
  absWorkingDir: PAGE,
  outdir: join(PAGE, FOLDER),
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2023',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: true,
  write: false,
  metafile: true,
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  legalComments: 'none',
  logLevel: 'silent',
  // Engines of Node, which the protocol tries and does without.
  external: ['sodium-native', 'node:*'],
} as const satisfies BuildOptions;

const nameOf = ({ path }: OutputFile) => relative(PAGE, path);

const find = (outputs: readonly OutputFile[], name: string) =>
  nameOf(outputs.find((one) => nameOf(one).startsWith(`${FOLDER}/${name}-`))!);

/** A script and what it imports; what it loads later is not among them. */
function importedBy(script: string, { outputs }: Metafile): string[] {
  const found = new Set([script]);
  for (const path of found)
    for (const { path: imported, kind } of outputs[path]!.imports)
      if (kind === 'import-statement') found.add(imported);
  return [...found];
}

interface PageParts {
  /** The script that begins, and those that it imports: they are asked for at once. */
  readonly scripts: readonly string[];
  readonly style: string;
  readonly icon: string;
  readonly build: string;
}

const page = ({ scripts: [script, ...imported], style, icon, build }: PageParts) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="A Skerry network, and the proof of what is shown of it">
<meta name="build" content="${build}">
<title>Skerry console</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>${imported.map((path) => `\n<link rel="modulepreload" href="${path}">`).join('')}
</head>
<body>
<div id="app"><p class="boot">Loading the console</p></div>
<noscript><p class="boot">The console needs JavaScript: it checks signatures and scores in the browser. The same facts are in the node's API, at <a href="api/v0/docs">api/v0/docs</a>.</p></noscript>
</body>
</html>
`;

async function bundle(run: typeof build): Promise<Build> {
  const workers = await run({ ...OPTIONS, entryPoints: WORKERS.map((name) => `./workers/${name}`) });
  const define = Object.fromEntries(
    WORKERS.map((name) => [`${name.toUpperCase()}_URL`, JSON.stringify(find(workers.outputFiles, name))]),
  );
  const main = await run({
    ...OPTIONS,
    define,
    splitting: true,
    entryPoints: { app: './main', style: './style.css' },
  });
  const outputs = [...workers.outputFiles, ...main.outputFiles].sort((one, other) =>
    one.path < other.path ? -1 : 1,
  );
  const files = new Map<string, Uint8Array>(outputs.map((one) => [nameOf(one), one.contents]));
  const mark = readFileSync(join(PAGE, 'mark.svg'));
  const markHash = createHash('sha256').update(mark).digest('hex').slice(0, 8);
  files.set(`${FOLDER}/mark-${markHash}.svg`, mark);
  const scripts = importedBy(find(main.outputFiles, 'app'), main.metafile);
  const style = find(main.outputFiles, 'style');
  const icon = `${FOLDER}/mark-${markHash}.svg`;
  const text = page({ scripts, style, icon, build: buildOf(files) });
  files.set(PAGE_FILE, new TextEncoder().encode(text));
  const sources = [workers, main].flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const first = [PAGE_FILE, icon, style, find(workers.outputFiles, 'live'), ...scripts];
  return { files, first, sources: [...new Set(sources)].map((source) => join(PAGE, source)) };
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Bundles the console. The same sources give the same bytes. Throws where esbuild or a source is missing. One after another: the
 * bundler is a process of 100 MiB that outlives what it was asked, and it ends for all who ask.
 */
export function buildConsole(): Promise<Build> {
  const own = last.then(async () => {
    const esbuild = await import('esbuild');
    try {
      return await bundle(esbuild.build);
    } finally {
      await esbuild.stop();
    }
  });
  last = own.catch(() => {});
  return own;
}
