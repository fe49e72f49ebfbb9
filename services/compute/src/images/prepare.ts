import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';
import { preflight } from '../host/preflight.ts';
import type { AcceleratorChoice } from '../vm/accel.ts';
import { IMAGE_FILES, type Image } from './image.ts';
import type { Report } from './progress.ts';
import { ImageStore } from './store.ts';

/**
 * Builds an image ahead of its first use, in the cache that compute nodes of this machine share; programs that it takes
 * are installed first where the settings allow it. Throws as ImageStore.ensure does.
 */
export async function prepareImage(
  name: string,
  config: ComputeConfig,
  host: { readonly log: Logger; readonly signal: AbortSignal; readonly report: Report },
): Promise<Image> {
  const { log, signal, report } = host;
  // What keeps machines from running does not keep an image from being built; what does is told by the build itself.
  const say = (message: string) => report({ percent: 0, message });
  await preflight(config.installPackages, log, signal, say);
  return new ImageStore({ cacheDir: config.cacheDir, mirrors: config, log, signal }).ensure(name, report);
}

/** Builds images ahead of their first use, and uses the first kernel to settle how guests run. */
export async function prepareImages(
  names: readonly string[],
  images: ImageStore,
  accelerator: AcceleratorChoice,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (const name of names) {
    try {
      const { directory } = await images.ensure(name, () => {});
      await accelerator.decide(join(directory, IMAGE_FILES.kernel), join(directory, IMAGE_FILES.initrd));
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, image: name }, 'an image could not be built in advance');
    }
  }
}
