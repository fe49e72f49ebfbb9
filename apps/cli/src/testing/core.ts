import { join } from 'node:path';
import { coreService } from '@skerry/core';
import { createLogger, readConfig } from '@skerry/kit';

/** A core node in this process, with its data below `home`, at a port of the system's choice unless a setting says another. */
export async function startCore(
  home: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly url: string } & AsyncDisposable> {
  const config = readConfig(coreService.config, {
    SKERRY_CORE_DATA_DIR: join(home, 'core'),
    SKERRY_CORE_PORT: '0',
    SKERRY_CORE_HOST: '127.0.0.1',
    ...settings,
  });
  const core = await coreService.start(config, {
    log: createLogger('test', 'fatal'),
    signal: new AbortController().signal,
  });
  return { url: core.urls[0]!, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
}
