import { randomBytes } from 'node:crypto';
import { access, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  acquireLock,
  type Client,
  FairSlots,
  isForbidden,
  isLacking,
  isMissing,
  type Logger,
  makeDirectory,
  readTextIfAny,
  renameDurably,
  syncFile,
  writeFileAtomically,
} from '@skerry/kit';
import { AppError, fieldsOf } from '@skerry/protocol';
import { buildImage } from './build.ts';
import { buildFailureOf } from './build-failure.ts';
import { buildPrefixOf, filesOf, type Image, lockNameOf, lockOfBuild, MANIFEST } from './image.ts';
import { type FileSource, isFileImage, makeFileImage } from './network-file.ts';
import { LoggedProgress, type Progress, type Report } from './progress.ts';
import { findRecipe, imageDirectoryName, type Mirrors } from './recipe.ts';
import { noteUse, sweepFileImages } from './sweep.ts';

export interface ImageStoreOptions {
  readonly cacheDir: string;
  readonly mirrors: Mirrors;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Where images come from that are named by a hash, and the largest that is fetched; without it there are none. */
  readonly files?: { readonly source: FileSource; readonly limitBytes: number } | undefined;
  /** Names that stand for others. */
  readonly table?: Readonly<Record<string, string>> | undefined;
}

/** Of a release whose builds had one lock for all. */
const OLDER_BUILD = /^\.build-[0-9a-f]{12}$/;

/** Images that are made at once, those of one owner one after the other; the images that nodes know by name wait for no owner's. */
const BUILDS = {
  running: { total: 3, reserve: 1, perClient: 1 },
  waiting: { total: 10_000, reserve: 1_000, perClient: 1_000 },
  waitMs: 6 * 3_600_000,
  what: 'images that are made',
  retryAfter: 60,
} as const;

/** How an image is made, whatever its kind. */
interface Origin {
  readonly name: string;
  /** Whether the node itself, or whoever runs it, gave it a name. */
  readonly isKnown: boolean;
  /** The directory, below the cache, that holds the result. */
  readonly directoryName: string;
  /** In the log and to whoever waits. */
  readonly summary: string;
  make(directory: string, report: Report): Promise<Pick<Image, 'kernelVersion' | 'diskMib' | 'boot'>>;
}

interface Build {
  readonly done: Promise<Image>;
  readonly watchers: Set<Report>;
  last: Progress;
}

/** Named images and images that are files of the network, made on first use and kept in a cache that several processes may share. */
export class ImageStore {
  readonly #options: ImageStoreOptions;
  readonly #directory: string;
  /** What each owner waits for: what waits in the line of one keeps no other from the same image. */
  readonly #builds = new Map<string, Build>();
  readonly #slots = new FairSlots(BUILDS);
  #isTidied = false;

  constructor(options: ImageStoreOptions) {
    this.#options = options;
    this.#directory = join(options.cacheDir, 'images');
  }

  /** The image if it was built before. Throws UNKNOWN_IMAGE. */
  async find(name: string): Promise<Image | undefined> {
    return readImage(join(this.#directory, this.#originOf(name).directoryName));
  }

  /**
   * The image, built now if need be; callers at the same time share one build. Throws UNKNOWN_IMAGE, and IMAGE_UNAVAILABLE
   * with the tool's own words or STORAGE_FULL when it cannot be built; a later call tries again.
   * @param owner who wants it, where it is a file: nobody waits for files of another
   */
  async ensure(name: string, report: Report, owner = ''): Promise<Image> {
    const origin = this.#originOf(name);
    const key = origin.isKnown ? origin.name : `${origin.name} ${owner}`;
    const running = this.#builds.get(key);
    if (running) {
      report(running.last);
      return watch(running, report);
    }
    const found = await this.find(name);
    if (found) {
      await noteUse(found);
      return found;
    }
    return watch(this.#builds.get(key) ?? this.#start(key, origin, owner), report);
  }

  /** Removes images of files that are not used (sweep.ts); the first time, what builds left that were cut off. */
  async sweep(nowMs: number): Promise<void> {
    const { log } = this.#options;
    if (!this.#isTidied)
      await this.#tidy().catch((error: unknown) => {
        if (!this.#options.signal.aborted) log.warn({ err: error }, 'unfinished images could not be removed');
      });
    this.#isTidied = true;
    const images = await sweepFileImages(this.#directory, nowMs);
    if (images.length > 0) log.info({ images }, 'removed images that nobody uses');
  }

  #originOf(asked: string): Origin {
    const { table = {}, files, mirrors, signal } = this.#options;
    const isNamed = Object.hasOwn(table, asked);
    const name = isNamed ? table[asked]! : asked;
    if (isFileImage(name) && files) {
      return {
        name,
        isKnown: isNamed,
        directoryName: `file-${name}`,
        summary: `creating an image from the file ${name}`,
        make: (directory, report) =>
          makeFileImage(files.source, name, directory, files.limitBytes, report, signal),
      };
    }
    const recipe = findRecipe(name, mirrors);
    return {
      name: recipe.name,
      isKnown: true,
      directoryName: imageDirectoryName(recipe),
      summary: `building from ${recipe.mirror}`,
      make: async (directory, report) => ({
        ...(await buildImage(recipe, directory, report, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          throw buildFailureOf(recipe, error);
        })),
        diskMib: recipe.diskMib,
        boot: 'kernel',
      }),
    };
  }

  #start(key: string, origin: Origin, owner: string): Build {
    const watchers = new Set<Report>();
    const logged = new LoggedProgress();
    const progress: Report = (last) => {
      build.last = last;
      const { percent, message } = last;
      if (logged.isDue(last, performance.now()))
        this.#options.log.info({ image: origin.name, percent }, `image ${origin.name}: ${message}`);
      for (const watcher of watchers) watcher(last);
    };
    const client = { key: owner, isExempt: origin.isKnown };
    const done = this.#buildInTurn(client, origin, progress).finally(() => this.#builds.delete(key));
    const build: Build = { done, watchers, last: { percent: 0, message: 'preparing' } };
    this.#builds.set(key, build);
    return build;
  }

  async #buildInTurn(
    client: Pick<Client, 'key' | 'isExempt'>,
    origin: Origin,
    report: Report,
  ): Promise<Image> {
    // Those who wait are told once there is somebody to tell.
    await Promise.resolve();
    if (!this.#slots.isFreeFor(client)) report({ percent: 0, message: 'waiting for other images' });
    return this.#slots.run(client, () => this.#build(origin, report), this.#options.signal);
  }

  async #build(origin: Origin, report: Report): Promise<Image> {
    const { log } = this.#options;
    const target = join(this.#directory, origin.directoryName);
    await makeDirectory(this.#directory, 0o755);
    using _lock = await this.#lock(origin, report);
    const found = await readImage(target, log);
    if (found) return found;
    const prefix = buildPrefixOf(origin.directoryName);
    await this.#removeLeftovers(prefix);
    // What is there has no manifest, or a damaged one, so it is not an image.
    await rm(target, { recursive: true, force: true });
    const directory = join(this.#directory, `${prefix}${randomBytes(6).toString('hex')}`);
    const startedMs = Date.now();
    try {
      await mkdir(directory, { mode: 0o755 });
      report({ percent: 1, message: origin.summary });
      const made = await origin.make(directory, report);
      const manifest = { name: origin.name, buildId: randomBytes(8).toString('hex'), ...made };
      await finish(directory, manifest);
      await renameDurably(directory, target);
      const { name: image, ...facts } = manifest;
      log.info({ image, ...facts, buildMs: Date.now() - startedMs }, `image ${image} is ready`);
      return { ...manifest, directory: target };
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async #lock({ directoryName }: Origin, report: Report): Promise<Disposable | undefined> {
    const path = join(this.#directory, lockNameOf(directoryName));
    const { signal } = this.#options;
    const free = await acquireLock(path, { waitMs: 0, signal });
    if (free) return free;
    report({ percent: 0, message: 'waiting for somebody else who makes this image' });
    return acquireLock(path, { signal });
  }

  /** Of images that nobody may ask for again. Where somebody builds, the lock is held. */
  async #tidy(): Promise<void> {
    const names = await readdir(this.#directory).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    const left = new Map(
      names.flatMap((name) => {
        const build = lockOfBuild(name);
        return build ? [[build.lock, build.prefix] as const] : [];
      }),
    );
    for (const [lock, prefix] of left) {
      using free = await acquireLock(join(this.#directory, lock), {
        waitMs: 0,
        signal: this.#options.signal,
      });
      if (free) await this.#removeLeftovers(prefix);
    }
  }

  /** Directories of builds that were cut off. Only the holder of their lock may call this: nobody else is at them. */
  async #removeLeftovers(prefix: string): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      if (name.startsWith(prefix) || OLDER_BUILD.test(name))
        await rm(join(this.#directory, name), { recursive: true, force: true });
    }
  }
}

async function watch(build: Build, report: Report): Promise<Image> {
  build.watchers.add(report);
  try {
    return await build.done;
  } finally {
    build.watchers.delete(report);
  }
}

/** The manifest is written last, after everything else is on the disk: an image that has one is whole. */
async function finish(directory: string, manifest: Omit<Image, 'directory'>): Promise<void> {
  for (const name of filesOf(manifest)) await syncFile(join(directory, name));
  await writeFileAtomically(join(directory, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, 0o644);
}

/**
 * The image in a directory. Undefined where there is none, or not all of one, or the disk cannot read what it is, which is said where
 * there is a log: the cache is made again. Throws what `isLacking` tells, and INTERNAL where the process may not read it.
 */
async function readImage(directory: string, log?: Logger): Promise<Image | undefined> {
  try {
    const text = await readTextIfAny(join(directory, MANIFEST));
    if (text === undefined) return undefined;
    const image = { ...parseManifest(JSON.parse(text)), directory };
    await Promise.all(filesOf(image).map((name) => access(join(directory, name))));
    return image;
  } catch (error) {
    if (isLacking(error)) throw error;
    if (isForbidden(error)) throw new AppError('INTERNAL', FORBIDDEN, { cause: error });
    log?.error({ err: error, directory }, 'an image of the cache is damaged and is made again');
    return undefined;
  }
}

/** As an owner reads it: without the place of the file. */
const FORBIDDEN = 'this node may not read its copy of the image';

/** Throws where it lacks what every image has. */
function parseManifest(value: unknown): Omit<Image, 'directory'> {
  const { name, buildId, kernelVersion, diskMib } = fieldsOf(value);
  const isWhole =
    [name, buildId, kernelVersion].every((one) => typeof one === 'string') && Number.isFinite(diskMib);
  if (!isWhole) throw new Error(`${MANIFEST} is not that of an image`);
  return value as Omit<Image, 'directory'>;
}
