import asyncHooks, { type AsyncHook, AsyncResource } from 'node:async_hooks';
import { flushCompileCache } from 'node:module';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Runs test files in one process, one after another: `node together.ts FILE ...`. Each is a suite, so that what it does before and
 * after its tests is not for those of others. All are loaded before the first test of any starts, so that loading disturbs none.
 */
const paths = process.argv.splice(2);

/**
 * The test runner follows each promise to know whose test a stray error is. That is a seventh of the CPU time of tests, and once all
 * are loaded nothing else needs it: a stray error then fails the process, and each of its files runs again in its own.
 */
const { createHook } = asyncHooks;
const following: AsyncHook[] = [];
asyncHooks.createHook = (callbacks) => {
  const hook = createHook(callbacks);
  following.push(hook);
  return hook;
};
// It takes `createHook` when it is loaded.
const { describe } = await import('node:test');
asyncHooks.createHook = createHook;

const turns = [...paths, 'all are loaded'].map(() => Promise.withResolvers<void>());
turns[0]!.resolve();
for (const [index, path] of paths.entries()) {
  describe(relative(process.cwd(), path), async () => {
    // The test runner tells by its asynchronous context which suite a test belongs to; whoever waits for another's turn leaves it.
    const load = AsyncResource.bind(() => import(pathToFileURL(path).href));
    // One at a time: what a module does when it is loaded is part of the suite that loads it first.
    await turns[index]!.promise;
    try {
      await load();
    } finally {
      turns[index + 1]!.resolve();
    }
    await turns.at(-1)!.promise;
  });
}
await turns.at(-1)!.promise;
for (const hook of following) hook.disable();
// For the processes that tests start, and for other files: Node itself writes when this process ends.
flushCompileCache();
