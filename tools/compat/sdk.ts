import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { skerryPaths } from '@skerry/kit';
import { runProgram } from '../run.ts';

/** The SDK of the deployed network, as npm has it: in a folder of its own, and no dependency of this repository. */

/** What the calls use; each brings along the rest. */
export const SDK_PACKAGES = [
  ...['account', 'client', 'core', 'message'],
  ...['evm', 'ethereum', 'base', 'solana', 'avalanche', 'cosmos', 'substrate', 'nuls2', 'tezos'],
].map((name) => `@aleph-sdk/${name}`);

// biome-ignore lint/suspicious/noExplicitAny: the SDK's own types are not at hand, and what it answers is looked into
export type Loose = any;

export interface Sdk {
  /** `message` -> what `@aleph-sdk/message` exports. */
  load(name: string): Loose;
  /** Package -> version. */
  readonly versions: Readonly<Record<string, string>>;
}

/** This version of the SDK has no such class or method. */
export class NotOffered extends Error {}

export const SDK_DIRECTORY = join(skerryPaths(process.env).cache, 'compat');

/** What the SDK imports and none of its packages names. */
const UNNAMED = ['decimal.js@10'];

// Its packages ask for versions of each other that exclude each other, and nothing of it needs to be built.
const FLAGS = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

async function install(packages: readonly string[]): Promise<void> {
  const code = await runProgram('npm', [
    'install',
    '--silent',
    '--prefix',
    SDK_DIRECTORY,
    ...FLAGS,
    ...packages,
  ]);
  if (code !== 0) throw new Error(`npm install ended with ${code}; the SDK comes from the npm registry`);
}

interface Manifest {
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const readManifest = (name: string) =>
  JSON.parse(readFileSync(join(SDK_DIRECTORY, 'node_modules', name, 'package.json'), 'utf8')) as Manifest;

/** Installs the newest versions, and what they ask their users to install. Throws where npm does. */
export async function installSdk(): Promise<void> {
  mkdirSync(SDK_DIRECTORY, { recursive: true });
  writeFileSync(join(SDK_DIRECTORY, 'package.json'), JSON.stringify({ name: 'compat', private: true }));
  const newest = SDK_PACKAGES.map((name) => `${name}@latest`);
  await install(newest);
  const peers = new Map(
    SDK_PACKAGES.flatMap((name) => Object.entries(readManifest(name).peerDependencies ?? {})),
  );
  const others = [...peers].filter(([name]) => !SDK_PACKAGES.includes(name));
  await install([...newest, ...others.map(([name, range]) => `${name}@${range}`), ...UNNAMED]);
}

export const isInstalled = (): boolean => existsSync(join(SDK_DIRECTORY, 'node_modules'));

/** What was installed. */
export function openSdk(): Sdk {
  const require = createRequire(join(SDK_DIRECTORY, 'package.json'));
  return {
    load: (name) => require(`@aleph-sdk/${name}`),
    versions: Object.fromEntries(SDK_PACKAGES.map((name) => [name, readManifest(name).version])),
  };
}
