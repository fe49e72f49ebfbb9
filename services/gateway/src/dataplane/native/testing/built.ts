import { fileURLToPath } from 'node:url';
import { buildNativePlane } from '../build.ts';

/** Beside what npm installed: tests build each version once. */
export const TEST_CACHE = fileURLToPath(
  new URL('../../../../../../node_modules/.cache/skerry', import.meta.url),
);

/** The native plane for tests, without a warning, as a release is; without a compiler there is nothing to test, and that is said. */
export async function builtForTests(extraFlags: readonly string[] = []): Promise<string> {
  const built = await buildNativePlane(TEST_CACHE, ['-Werror', ...extraFlags]);
  if ('missing' in built) throw new Error(`the native data plane cannot be built here: ${built.missing}`);
  return built.path;
}
