import { fileURLToPath } from 'node:url';
import { type BatchCheck, loadBatchCheck } from '../addon.ts';
import { SignatureBatch } from '../batch.ts';
import { buildBatchAddon } from '../build-addon.ts';

/** Beside what npm installed: tests build each version once. */
const TEST_CACHE = fileURLToPath(new URL('../../../../../../../node_modules/.cache/skerry', import.meta.url));

async function build(): Promise<string> {
  const built = await buildBatchAddon(TEST_CACHE);
  if ('missing' in built) throw new Error(`batches cannot be built here: ${built.missing}`);
  return built.path;
}
let addon: Promise<string> | undefined;

/** The addon for tests; without a compiler there is nothing to test, and that is said. */
export function addonForTests(): Promise<string> {
  addon ??= build();
  return addon;
}

export const checkForTests = async (): Promise<BatchCheck> => loadBatchCheck(await addonForTests());

/** One that takes even a single signature for a batch, so that all of a test goes through it. */
export const eagerBatch = async () => new SignatureBatch(await checkForTests(), 1);
