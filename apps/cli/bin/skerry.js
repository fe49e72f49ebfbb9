#!/usr/bin/env node
import { existsSync, mkdirSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLIENTS } from './clients.js';
import { isNodeNewEnough } from './version.js';

/** Compiled code is kept beside what else can be made again (packages/kit/src/daemon/paths.ts): a third less time and memory at a start. */
function compileCacheDirectory() {
  const { SKERRY_CACHE, SKERRY_HOME, XDG_CACHE_HOME } = process.env;
  const cache =
    SKERRY_CACHE ||
    (SKERRY_HOME ? join(SKERRY_HOME, 'cache') : join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'skerry'));
  return join(cache, 'compiled');
}

/** One directory after the other: Node's own recursion never ends below /proc. @returns whether it is there */
function makeDirectory(path) {
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch ({ code }) {
    if (code === 'EEXIST') return true;
    const above = dirname(path);
    return (
      code === 'ENOENT' && above !== path && !existsSync(above) && makeDirectory(above) && makeDirectory(path)
    );
  }
}

if (isNodeNewEnough()) {
  const compiled = compileCacheDirectory();
  if (makeDirectory(compiled)) {
    nodeModule.enableCompileCache(compiled);
    // Threads take it from here: without it each of them would compile anew what it loads, and bring a compiler for TypeScript with it.
    process.env.NODE_COMPILE_CACHE ??= compiled;
  }
  // Before anything else is loaded: it finds the rest.
  const { findBundle } = await import('@skerry/kit/resolve');
  const main = new URL('../src/main.ts', import.meta.url).href;
  const word = process.argv.slice(2).find((one) => one !== '--json');
  await import((CLIENTS.has(word) && findBundle('@skerry/cli', main)) || main);
} else {
  const { launch } = await import('./launch.js');
  launch([fileURLToPath(import.meta.url), ...process.argv.slice(2)]);
}
