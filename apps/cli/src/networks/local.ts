import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit/files';
import { isServiceUrl } from './service-url.ts';

/** Where the network of "skerry up" is: it says so for as long as it runs, since it may have other ports than the usual ones. */

const fileIn = (dataDir: string) => join(dataDir, 'local-core-url');

/** What is no address is left aside: the usual one holds. */
export async function readLocal(dataDir: string): Promise<string | undefined> {
  const url = (await readTextIfAny(fileIn(dataDir)))?.trim();
  return url !== undefined && isServiceUrl(url) ? url : undefined;
}

/** Until it is disposed; of several networks the last that came is meant. */
export async function noteLocal(dataDir: string, coreUrl: string): Promise<AsyncDisposable> {
  await makeDirectory(dataDir);
  await writeFileAtomically(fileIn(dataDir), `${coreUrl}\n`, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      if ((await readLocal(dataDir)) === coreUrl) await rm(fileIn(dataDir), { force: true });
    },
  };
}
