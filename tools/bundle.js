// `npm ci` runs this, with whatever Node there is: libraries of hundreds of small files become few, which load in a tenth of the
// time, and so does the command line (packages/kit/src/modules/bundles.ts finds them). Without the result everything works as well, only later.
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, parse, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Names that our sources import. */
const NAMES = [
  '@ipld/dag-cbor',
  '@ipld/dag-pb',
  '@multiformats/murmur3',
  'ipfs-unixfs',
  'ipfs-unixfs-importer',
  'kysely',
  'multiformats',
  'multiformats/cid',
  'multiformats/hashes/digest',
  'multiformats/hashes/sha2',
  'typebox/schema',
];

/** Modules of these folders of the command line run services, or make networks of them; one reads files of IPFS. */
const SERVICES =
  /^\.\.\/(?:network|joining|backup|doctor|images)\/|\/nodes\/address\.ts$|\/ipfs-file\.ts$|^@skerry\/(?!client\/|client$|protocol$)/;
const isOfClients = (path) => !SERVICES.test(path);

const COMMAND = fileURLToPath(new URL('../apps/cli/src/main.ts', import.meta.url));
const [CLIENT, PROTOCOL] = ['client', 'protocol'].map((name) =>
  fileURLToPath(new URL(`../packages/${name}/src/`, import.meta.url)),
);
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

/** @returns what the list says of each entry */
async function bundle(entryPoints, options = {}) {
  const { build } = await import('esbuild');
  const { metafile } = await build({
    absWorkingDir: MODULES,
    entryPoints,
    outdir: TO,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    metafile: true,
    logLevel: 'error',
    ...options,
  });
  return entryPoints.map(({ out }) => {
    const file = `${out}.mjs`;
    const output = relative(MODULES, join(TO, file));
    const inputs = inputsOf(metafile.outputs, output).map(listInput);
    return { entry: metafile.outputs[output].entryPoint, file, inputs };
  });
}

const bundleLibraries = async () => {
  const made = await bundle(NAMES.map((name) => ({ in: name, out: parse(fileNameOf(name)).name })));
  return NAMES.map((name, index) => [name, made[index]]);
};

/** What only the command line's other commands load, which run from the sources (apps/cli/bin/skerry.js). */
const leaveOut = {
  name: 'what runs services is no part of the command line',
  setup(build) {
    build.onResolve({ filter: /./ }, ({ kind, path, importer }) =>
      kind === 'dynamic-import' && !isOfClients(path)
        ? { path: pathToFileURL(resolve(dirname(importer), path)).href, external: true }
        : undefined,
    );
  },
};

/** Each package has a copy of these, of the same version: one is enough. */
const share = {
  name: 'one copy of what two packages have',
  setup(build) {
    build.onResolve({ filter: /^@noble\// }, ({ path, kind, importer, pluginData }) =>
      importer.startsWith(CLIENT) && pluginData !== share
        ? build.resolve(path, { kind, importer, resolveDir: PROTOCOL, pluginData: share })
        : undefined,
    );
  },
};

/** The command line as far as commands need it that are clients of a network. */
const bundleCommand = async () => {
  const [made] = await bundle([{ in: COMMAND, out: 'skerry' }], {
    plugins: [leaveOut, share],
    // No module, and only who follows a log needs it.
    external: ['ws'],
    // Modules, of which only what is used goes in: hash-wasm is 30 programs of WebAssembly.
    mainFields: ['module', 'main'],
  });
  return [['@skerry/cli', made]];
};

rmSync(TO, { recursive: true, force: true });
try {
  const list = Object.fromEntries([...(await bundleLibraries()), ...(await bundleCommand())]);
  writeFileSync(join(TO, 'list.json'), JSON.stringify(list));
} catch (error) {
  rmSync(TO, { recursive: true, force: true });
  console.error(`libraries are not bundled, so starts take longer: ${error.message}`);
}
