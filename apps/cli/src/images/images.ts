import { computeConfig, prepareImage } from '@skerry/compute';
import { readConfig } from '@skerry/kit';
import { IMAGE_NAMES } from '@skerry/protocol/forms';
import { withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';
import { createNoteLog } from '../output/log.ts';

export async function listImages({ output }: Context): Promise<void> {
  output.result(IMAGE_NAMES, IMAGE_NAMES.join('\n'));
}

export async function buildImage({ environment, output }: Context, name: string): Promise<void> {
  const config = readConfig(computeConfig, withoutCommandVariables(environment));
  // From the first word on: what is installed is said before it is done.
  using progress = output.progress(0);
  const image = await prepareImage(name, config, {
    log: createNoteLog('image', 'error', output),
    signal: new AbortController().signal,
    report: ({ percent, message }) => progress.show(`image ${name}: ${percent}% ${message}`),
  });
  progress[Symbol.dispose]();
  const { buildId, directory, kernelVersion, diskMib } = image;
  output.result(
    { name, build_id: buildId, directory, kernel_version: kernelVersion, disk_mib: diskMib },
    `${name} is in ${directory}`,
  );
}
