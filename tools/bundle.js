// `npm ci` runs this, with whatever Node there is: libraries of hundreds of small files become few, which load in a tenth of the
// time (packages/kit/src/modules/bundles.ts finds them). Without the result everything works as well, only later.
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join, parse, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Names that our sources import. */
const NAMES = [
  '@ipld/dag-cbor',
  '@ipld/dag-pb',
  'ipfs-unixfs',
  'ipfs-unixfs-exporter',
  'ipfs-unixfs-importer',
  'kysely',
  'multiformats',
  'multiformats/cid',
  'multiformats/hashes/digest',
  'multiformats/hashes/sha2',
  'typebox/schema',
];

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
const TO = process.argv[2] ?? join(MODULES, '.cache/skerry-bundles');
const fileNameOf = (name) => `${name.replace(/^@/, '').replaceAll('/', '-')}.mjs`;

/** Every file behind an output: its own and those of the chunks that it imports. */
function inputsOf(outputs, output, seen = new Set()) {
  if (seen.has(output)) return [];
  seen.add(output);
  const { inputs, imports } = outputs[output];
  const chunks = imports.filter(({ path }) => path in outputs);
  return [...Object.keys(inputs), ...chunks.flatMap(({ path }) => inputsOf(outputs, path, seen))];
}

const listInput = (path) => {
  const { size, mtimeMs } = statSync(join(MODULES, path));
  return [path, size, mtimeMs];
};

async function bundle() {
  const { build } = await import('esbuild');
  const { metafile } = await build({
    absWorkingDir: MODULES,
    entryPoints: NAMES.map((name) => ({ in: name, out: parse(fileNameOf(name)).name })),
    outdir: TO,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    metafile: true,
    logLevel: 'error',
  });
  const list = NAMES.map((name) => {
    const file = fileNameOf(name);
    const output = relative(MODULES, join(TO, file));
    const inputs = inputsOf(metafile.outputs, output).map(listInput);
    return [name, { entry: metafile.outputs[output].entryPoint, file, inputs }];
  });
  writeFileSync(join(TO, 'list.json'), JSON.stringify(Object.fromEntries(list)));
}

rmSync(TO, { recursive: true, force: true });
try {
  await bundle();
} catch (error) {
  rmSync(TO, { recursive: true, force: true });
  console.error(`libraries are not bundled, so starts take longer: ${error.message}`);
}
