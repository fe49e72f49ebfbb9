import { existsSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RuntimeName } from '@skerry/protocol';
import { PYTHON_LIBRARIES_DIRECTORY } from '../../host/requirements.ts';
import type { Mount } from './command-line.ts';

/** How a runtime is started inside a sandbox. */
export interface RuntimeKit {
  readonly runtime: RuntimeName;
  readonly mounts: readonly Mount[];
  readonly argv: readonly string[];
  /** What the runtime itself needs; a program's own memory comes on top. */
  readonly allowanceMib: number;
}

const INSIDE = fileURLToPath(new URL('../inside', import.meta.url));
/** Libraries of the machine, by Debian's custom and by others'. */
const LIBRARIES = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64'];
const SETPRIV = '/usr/bin/setpriv';
const PYTHON = '/usr/bin/python3';
/** A program that is packed with squashfs is unpacked inside, where it can harm nobody but itself. */
const UNSQUASHFS = '/usr/bin/unsquashfs';
/** Whether programs in Python may be packed so. */
export const hasUnsquashfs = (): boolean => existsSync(UNSQUASHFS);
/** What Python reads beside its standard library: what Debian's packages installed, and time zones. */
const PYTHON_FILES = [PYTHON_LIBRARIES_DIRECTORY, '/usr/share/zoneinfo', UNSQUASHFS];

const same = (path: string): Mount => ({ from: path, to: path });
const common = (): Mount[] => [
  ...LIBRARIES.filter((path) => existsSync(path)).map(same),
  same(SETPRIV),
  { from: INSIDE, to: '/skerry' },
];

const NODE_ALLOWANCE_MIB = 64;
const PYTHON_ALLOWANCE_MIB = 24;

function nodeKit(runtime: RuntimeName, file: string): RuntimeKit {
  return {
    runtime,
    mounts: [...common(), { from: process.execPath, to: '/usr/bin/node' }],
    argv: ['/usr/bin/node', '--no-warnings', `/skerry/${file}`],
    allowanceMib: NODE_ALLOWANCE_MIB,
  };
}

/** The machine's own Python with its standard library, and the libraries that Debian's packages added. */
function pythonKit(): RuntimeKit | undefined {
  if (!existsSync(PYTHON)) return undefined;
  const program = realpathSync(PYTHON);
  const library = `/usr/lib/${basename(program)}`;
  if (!existsSync(`${library}/os.py`)) return undefined;
  return {
    runtime: 'python3',
    mounts: [
      ...[...common(), { from: program, to: PYTHON }, same(library)],
      ...PYTHON_FILES.filter((path) => existsSync(path)).map(same),
    ],
    argv: [PYTHON, '-I', '-S', '-B', '/skerry/python.py'],
    allowanceMib: PYTHON_ALLOWANCE_MIB,
  };
}

/** The runtimes that this machine has. JavaScript and WebAssembly run in the Node that this process runs in. */
export function findRuntimes(): ReadonlyMap<RuntimeName, RuntimeKit> {
  const kits = [nodeKit('nodejs', 'node.mjs'), nodeKit('wasm', 'wasm.mjs'), pythonKit()];
  return new Map(kits.flatMap((kit) => (kit ? [[kit.runtime, kit]] : [])));
}
