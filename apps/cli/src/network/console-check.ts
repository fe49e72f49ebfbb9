import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from '@skerry/client';
import { AppError, parseTypedEvmAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { renderFields } from '../output/text.ts';

export interface CheckOptions {
  /** A folder with the checksums of a release; without it, the console of this command is the measure. */
  readonly release?: string;
  /** Who has to have signed them. */
  readonly by?: string;
}

/** A file of the console as somebody serves it: the same, another one, or none. */
type Compared = 'same' | 'different' | 'missing';

/** What is served has to be this. */
interface Measure {
  /** SHA-256 of each file, by its path. */
  readonly sums: ReadonlyMap<string, string>;
  readonly build: string;
  /** Of a release: its list, and who signed it. */
  readonly signed?: { readonly list: string; readonly by: string };
}

const TIMEOUT_MS = 30_000;
/** More is no file of a console. */
const FILE_BYTES_MAX = 16 * 1024 ** 2;
/** More is no list of checksums, and no signature. */
const LIST_BYTES_MAX = 1024 ** 2;
const NOT_FOUND = 404;
/** The list of the console's files, among the files of a release. */
const LIST = /^skerry-console-[^/]+\.sha256$/;

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Undefined where there is none, or one that is too large. Throws UPSTREAM_UNAVAILABLE. */
async function fetchFile(url: string): Promise<Uint8Array | undefined> {
  const response = await request(url, {
    // As a browser asks: to others, `/` is not the page.
    headers: { accept: 'text/html' },
    timeoutMs: TIMEOUT_MS,
    isAnswer: ({ status }) => status === NOT_FOUND,
  });
  if (response.status === NOT_FOUND || !response.body) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > FILE_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A file of a release. Throws INVALID_PARAMETERS where it is not there, FILE_CORRUPT where it is no such list. */
async function readList(folder: string, name: string): Promise<Uint8Array> {
  const bytes = await readFile(join(folder, name)).catch((error: Error) => {
    throw new AppError(
      'INVALID_PARAMETERS',
      `--release has to be a folder with ${name}, from where the release is handed out: ${error.message}`,
    );
  });
  if (bytes.length > LIST_BYTES_MAX)
    throw new AppError('FILE_CORRUPT', `${name} is too large for what it is`);
  return bytes;
}

/** The files of a release's console, by a list that somebody signed. Throws INVALID_SIGNATURE, FILE_CORRUPT, INVALID_PARAMETERS. */
async function measureOfRelease(folder: string, by: string): Promise<Measure> {
  const { buildOfSums, CHECKSUMS, parseChecksums, SIGNATURE, signerOf } = await import('@skerry/console');
  const textOf = async (name: string) => Buffer.from(await readList(folder, name)).toString();
  const checksums = await textOf(CHECKSUMS);
  const signer = signerOf(checksums, await textOf(SIGNATURE), by);
  const [list, sum] = [...parseChecksums(checksums, CHECKSUMS)].find(([name]) => LIST.test(name)) ?? [];
  if (list === undefined)
    throw new AppError('FILE_CORRUPT', `${CHECKSUMS} names no list of a console's files`);
  const bytes = await readList(folder, list);
  if (sha256(bytes) !== sum) throw new AppError('FILE_CORRUPT', `${list} is not what ${CHECKSUMS} says`);
  const sums = parseChecksums(Buffer.from(bytes).toString(), list);
  return { sums, build: buildOfSums(sums), signed: { list, by: signer } };
}

async function measureOfThis(): Promise<Measure> {
  const { openConsole } = await import('@skerry/console');
  const files = openConsole();
  const build = await files.build();
  const sums = new Map([...(await files.all())].map(([path, bytes]) => [path, sha256(bytes)]));
  return { sums, build };
}

async function measureBy({ release, by }: CheckOptions): Promise<Measure> {
  if (release === undefined && by === undefined) return measureOfThis();
  if (release === undefined || by === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      'a release is believed for who signed it: give both --release and --by',
    );
  return measureOfRelease(release, parseTypedEvmAddress(by));
}

const compare = (sum: string, theirs: Uint8Array | undefined): Compared =>
  theirs === undefined ? 'missing' : sha256(theirs) === sum ? 'same' : 'different';

/**
 * Compares what a core node serves with the console that this command has, or with that of a signed release. Exit code 1 where they
 * differ. Throws INVALID_SIGNATURE, FILE_CORRUPT, INVALID_PARAMETERS, UPSTREAM_UNAVAILABLE.
 */
export async function checkConsole(context: Context, options: CheckOptions): Promise<number> {
  const { output, coreUrl } = context;
  const { namedBuild, PAGE_FILE } = await import('@skerry/console');
  const { sums, build, signed } = await measureBy(options);
  const page = await fetchFile(`${coreUrl}/`);
  const served = page === undefined ? '' : namedBuild(new TextDecoder().decode(page));
  const differing: { path: string; is: Compared }[] = [];
  for (const [path, sum] of sums) {
    const is = compare(sum, path === PAGE_FILE ? page : await fetchFile(`${coreUrl}/${path}`));
    if (is !== 'same') differing.push({ path, is });
  }
  const isSame = differing.length === 0;
  output.result(
    {
      ...{ core: coreUrl, build, served_build: served, is_same: isSame, differing },
      ...(signed && { list: signed.list, signed_by: signed.by }),
    },
    renderFields([
      ['core', coreUrl],
      ['build', build],
      ...(signed ? [['signed', `${signed.list} by ${signed.by}`] as [string, string]] : []),
      ['served', served === '' ? 'no console' : served],
      ['compared', isSame ? 'the same, byte by byte' : `${differing.length} of ${sums.size} files differ`],
      ...differing.map(({ path, is }): [string, string] => [`  ${is}`, path]),
    ]),
  );
  return isSame ? EXIT.ok : EXIT.failed;
}
