import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit/files';
import { fieldsOf } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { isServiceUrl } from './service-url.ts';

/** Where the network of "skerry up" is: it says so for as long as it runs, since it may have other ports than the usual ones. */

/** Where "skerry up" keeps its network unless it is told another place. */
export const devnetIn = (dataDir: string) => join(dataDir, 'devnet');

/** How often a daemon of that network was started again since the network runs. */
export interface Restarts {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly lastMs: number;
}

type RestartsByName = Readonly<Record<string, Restarts>>;

export interface LocalNetwork extends AsyncDisposable {
  /** A daemon ended and is started again. */
  noteRestart(name: string, nowMs: number): Promise<void>;
}

const restartsIn = (dataDir: string) => join(dataDir, 'local-restarts.json');

const fileIn = (dataDir: string) => join(dataDir, 'local-core-url');

const placeIn = (dataDir: string) => join(dataDir, 'local-network.json');

/** Where the last network began that is not at the usual place: it is said before anything of it can be killed. */
const begunIn = (dataDir: string) => join(dataDir, 'local-begun');

/** Where that network is on this machine. */
export interface LocalPlace {
  /** Of the whole network. */
  readonly dataDir: string;
  /** Where its daemons listen, by the names of its ports. */
  readonly urls: Readonly<Record<string, string | undefined>>;
}

async function readNoted(dataDir: string): Promise<LocalPlace | undefined> {
  try {
    const said = fieldsOf(JSON.parse(await readFile(placeIn(dataDir), 'utf8')));
    const { data_dir: place } = said;
    return typeof place === 'string'
      ? { dataDir: place, urls: fieldsOf(said.urls) as LocalPlace['urls'] }
      : undefined;
  } catch {
    // There is none, or none that can be read.
    return undefined;
  }
}

/** Of the network that runs, or ran when it was killed; at the usual place where nothing says another. */
export const readLocalPlace = async (dataDir: string): Promise<LocalPlace> =>
  (await readNoted(dataDir)) ?? { dataDir: devnetIn(dataDir), urls: {} };

const readBegun = async (dataDir: string) => (await readTextIfAny(begunIn(dataDir)))?.trim() || undefined;

/** Where a network may run: first where the last that came up is, then where the last began that is elsewhere, then the usual place. */
export async function listLocalDirs(dataDir: string): Promise<string[]> {
  const said = [(await readNoted(dataDir))?.dataDir, await readBegun(dataDir)];
  return [...new Set([...said.filter((place) => place !== undefined), devnetIn(dataDir)])];
}

/** Says where a network begins, until it is disposed; the usual place needs no saying. Where it cannot be said, the network begins all the same. */
export async function noteBegun(dataDir: string, place: string): Promise<AsyncDisposable> {
  if (place !== devnetIn(dataDir)) {
    await makeDirectory(dataDir)
      .then(() => writeFileAtomically(begunIn(dataDir), `${place}\n`, 0o600))
      .catch(() => {});
  }
  return { [Symbol.asyncDispose]: () => forgetBegun(dataDir, place) };
}

async function forgetBegun(dataDir: string, place: string): Promise<void> {
  if ((await readBegun(dataDir)) === place) await rm(begunIn(dataDir), { force: true });
}

async function removeNotes(dataDir: string): Promise<void> {
  for (const file of [fileIn(dataDir), restartsIn(dataDir), placeIn(dataDir)])
    await rm(file, { force: true });
}

/** The network at a place has ended, perhaps without a word: what it said is not true any more. */
export async function forgetLocal(dataDir: string, place: string): Promise<void> {
  await forgetBegun(dataDir, place);
  if ((await readNoted(dataDir))?.dataDir === place) await removeNotes(dataDir);
}

/** What shuts the virtual machines down that a network left at a place. Pure. */
export const downMachinesAt = (dataDir: string, place: string) =>
  place === devnetIn(dataDir)
    ? 'skerry down --machines'
    : `skerry down --machines --data-dir ${shellWord(place)}`;

/** What is no address is left aside: the usual one holds. */
export async function readLocal(dataDir: string): Promise<string | undefined> {
  const url = (await readTextIfAny(fileIn(dataDir)))?.trim();
  return url !== undefined && isServiceUrl(url) ? url : undefined;
}

/** Of the network with this core node. */
export async function readRestarts(dataDir: string, coreUrl: string): Promise<RestartsByName> {
  try {
    const text = await readFile(restartsIn(dataDir), 'utf8');
    const said = JSON.parse(text) as { core_url: string; restarts: RestartsByName };
    return said.core_url === coreUrl ? said.restarts : {};
  } catch {
    // There is none, or none that can be read: the log has them all the same.
    return {};
  }
}

/** Until it is disposed; of several networks the last that came is meant. */
export async function noteLocal(
  dataDir: string,
  coreUrl: string,
  place: LocalPlace = { dataDir: devnetIn(dataDir), urls: {} },
): Promise<LocalNetwork> {
  await makeDirectory(dataDir);
  await writeFileAtomically(fileIn(dataDir), `${coreUrl}\n`, 0o600);
  const text = JSON.stringify({ data_dir: place.dataDir, urls: place.urls });
  await writeFileAtomically(placeIn(dataDir), text, 0o600);
  await rm(restartsIn(dataDir), { force: true });
  let restarts: RestartsByName = {};
  let writing = Promise.resolve();
  return {
    noteRestart(name, nowMs) {
      restarts = { ...restarts, [name]: { count: (restarts[name]?.count ?? 0) + 1, lastMs: nowMs } };
      const text = JSON.stringify({ core_url: coreUrl, restarts });
      const write = async () => {
        // A network that came later is the one that is meant.
        if ((await readLocal(dataDir)) === coreUrl)
          await writeFileAtomically(restartsIn(dataDir), text, 0o600);
      };
      // Where it cannot be written, the network runs on.
      writing = writing.then(write).catch(() => {});
      return writing;
    },
    async [Symbol.asyncDispose]() {
      await writing;
      if ((await readLocal(dataDir)) !== coreUrl) return;
      await removeNotes(dataDir);
    },
  };
}
