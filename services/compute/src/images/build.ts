import { copyFile, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { proxyVariables } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { guestFiles } from './guest-files.ts';
import { guestLinks } from './guest-links.ts';
import { IMAGE_FILES } from './image.ts';
import { encodeInitrd, INITRD_MODULES } from './initrd.ts';
import { listInLoadOrder, parseModulesDep } from './modules-dep.ts';
import { parseBootstrapLine, type Report } from './progress.ts';
import { aptSources, type Recipe } from './recipe.ts';

const BOOTSTRAP_TIMEOUT_MS = 60 * 60_000;
const STEP_TIMEOUT_MS = 15 * 60_000;

/**
 * mmdebstrap runs in mount and process namespaces of its own, and everything in them dies with this process: a build that
 * is cut off leaves plain files behind, never a mounted /dev that a later clean-up would empty.
 */
const CONTAINED = [
  '--pdeathsig',
  'KILL',
  'unshare',
  '--mount',
  '--pid',
  '--fork',
  '--kill-child=KILL',
  '--mount-proc',
  '--',
];

/**
 * Builds an image in an empty directory: disk, kernel and initrd. Needs root, for the owners of the files inside.
 * Throws what `run` throws.
 */
export async function buildImage(
  recipe: Recipe,
  directory: string,
  report: Report,
  signal: AbortSignal,
): Promise<{ kernelVersion: string }> {
  const root = join(directory, 'root');
  const packages = join(directory, 'packages');
  await mkdir(packages);
  await bootstrap(recipe, root, packages, report, signal);
  report({ percent: 82, message: 'unpacking the kernel' });
  const kernelVersion = await installKernel(root, packages, directory, signal);
  await writeInitrd(root, packages, kernelVersion, join(directory, IMAGE_FILES.initrd));
  await layGuestFiles(root, recipe);
  report({ percent: 86, message: 'creating the file system' });
  const raw = join(directory, 'disk.raw');
  const extended = 'lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0';
  await run(
    'mke2fs',
    [
      '-q',
      '-F',
      '-t',
      'ext4',
      '-L',
      'root',
      '-m',
      '1',
      '-E',
      extended,
      '-d',
      root,
      raw,
      `${recipe.diskMib}M`,
    ],
    {
      signal,
      timeoutMs: STEP_TIMEOUT_MS,
    },
  );
  report({ percent: 94, message: 'creating the disk image' });
  await run('qemu-img', ['convert', '-O', 'qcow2', raw, join(directory, IMAGE_FILES.disk)], {
    signal,
    timeoutMs: STEP_TIMEOUT_MS,
  });
  for (const path of [root, packages, raw]) await rm(path, { recursive: true, force: true });
  return { kernelVersion };
}

async function bootstrap(
  recipe: Recipe,
  root: string,
  packages: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const args = [
    '--mode=root',
    '--variant=minbase',
    '--format=directory',
    `--include=${recipe.packages.join(',')}`,
    '--aptopt=APT::Install-Recommends "false"',
    ...['man', 'locale', 'doc', 'info'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    `--customize-hook=${kernelHook(recipe, packages)}`,
    recipe.suite,
    root,
    '-',
  ];
  await run('setpriv', [...CONTAINED, 'mmdebstrap', ...args], {
    input: aptSources(recipe),
    signal,
    timeoutMs: BOOTSTRAP_TIMEOUT_MS,
    env: { ...proxyVariables(), DEBIAN_FRONTEND: 'noninteractive' },
    onErrorLine: (line) => {
      const progress = parseBootstrapLine(line);
      if (progress) report(progress);
    },
  });
}

/**
 * Downloads the kernel without installing it: its scripts would build an initrd for hardware the guest does not have.
 * The archive removes old kernels, so the version is asked for and not written down.
 */
function kernelHook(recipe: Recipe, packages: string): string {
  return [
    'set -e',
    `cd '${packages.replaceAll("'", "'\\''")}'`,
    'export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"',
    `kernel=$(apt-cache depends ${recipe.kernelPackage} | sed -n 's/^ *Depends: \\(linux-image-[0-9][^ ]*\\)$/\\1/p' | head -n 1)`,
    `[ -n "$kernel" ] || { echo 'E: ${recipe.kernelPackage} names no kernel' >&2; exit 1; }`,
    // Ubuntu keeps the modules apart.
    `modules=$(apt-cache depends "$kernel" | sed -n 's/^ *Depends: \\(linux-modules-[0-9][^ ]*\\)$/\\1/p' | head -n 1)`,
    'apt-get -q -o APT::Sandbox::User=root download "$kernel" $modules busybox-static >&2',
  ].join('\n');
}

/** Puts the modules into the root and the kernel beside it; returns the kernel's version. */
async function installKernel(
  root: string,
  packages: string,
  directory: string,
  signal: AbortSignal,
): Promise<string> {
  const unpacked = join(packages, 'unpacked');
  await mkdir(unpacked);
  for (const name of await readdir(packages)) {
    if (name.endsWith('.deb'))
      await run('dpkg-deb', ['-x', join(packages, name), unpacked], { signal, timeoutMs: STEP_TIMEOUT_MS });
  }
  const modules = await findUnpacked(packages, 'lib/modules');
  const [version, ...others] = await readdir(modules);
  if (version === undefined || others.length > 0)
    throw new AppError('INTERNAL', 'the kernel package does not contain exactly one kernel');
  await rename(modules, join(root, 'usr/lib/modules'));
  await run('chroot', [root, 'depmod', version], { signal, timeoutMs: STEP_TIMEOUT_MS });
  await rename(join(unpacked, 'boot', `vmlinuz-${version}`), join(directory, IMAGE_FILES.kernel));
  return version;
}

/** Newer packages put their files where /lib and /bin lead to, and some only a part of them. */
async function findUnpacked(packages: string, path: string): Promise<string> {
  for (const place of [path, join('usr', path)]) {
    const found = join(packages, 'unpacked', place);
    if (await lstat(found).catch(() => undefined)) return found;
  }
  throw new AppError('INTERNAL', `the packages do not contain ${path}`);
}

async function writeInitrd(
  root: string,
  packages: string,
  kernelVersion: string,
  path: string,
): Promise<void> {
  const modules = join(root, 'usr/lib/modules', kernelVersion);
  const dependencies = parseModulesDep(await readFile(join(modules, 'modules.dep'), 'utf8'));
  const files: { name: string; data: Uint8Array }[] = [];
  // What one kernel has as a module, another has inside itself.
  const builtIn = new Set((await readFile(join(modules, 'modules.builtin'), 'utf8')).split('\n'));
  const wanted = INITRD_MODULES.filter((module) => !builtIn.has(module));
  for (const module of listInLoadOrder(dependencies, wanted)) {
    const name = basename(module).replace(/\.ko(\.\w+)?$/, '');
    files.push({ name, data: await readModule(join(modules, module), packages) });
  }
  const busybox = await readFile(await findUnpacked(packages, 'bin/busybox'));
  await writeFile(path, encodeInitrd(busybox, files));
}

/** A module as the kernel loads it; newer kernels' packages hold them packed. */
async function readModule(path: string, workDir: string): Promise<Uint8Array> {
  if (path.endsWith('.zst')) return zstdDecompressSync(await readFile(path));
  if (!path.endsWith('.xz')) return readFile(path);
  const copy = join(workDir, basename(path));
  await copyFile(path, copy);
  await run('xz', ['--decompress', copy]);
  return readFile(copy.slice(0, -'.xz'.length));
}

async function layGuestFiles(root: string, { cloudInit, distro }: Recipe): Promise<void> {
  for (const { path, text, permissions = 0o644 } of guestFiles(cloudInit, distro)) {
    const target = await clearPath(root, path);
    await writeFile(target, text, { mode: permissions, flag: 'wx' });
  }
  for (const { path, target: to } of guestLinks(distro)) await symlink(to, await clearPath(root, path));
  // Each guest makes its own, at its first start.
  for (const name of await readdir(join(root, 'etc/ssh'))) {
    if (name.startsWith('ssh_host_')) await rm(join(root, 'etc/ssh', name));
  }
  // Kept in memory instead: flushing a journal to disk is a cost of every start.
  await rm(join(root, 'var/log/journal'), { recursive: true, force: true });
}

/** Where a guest's absolute path is on this machine, emptied, with the directories above it made. */
async function clearPath(root: string, path: string): Promise<string> {
  const target = join(root, path);
  await mkdir(dirname(target), { recursive: true });
  // A link inside the guest's tree would lead out of it when followed from here.
  if (await isLink(dirname(target)))
    throw new AppError('INTERNAL', `${dirname(path)} is a link in the packages' files`);
  await rm(target, { force: true });
  return target;
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path)).isSymbolicLink();
}
