import { request } from '@skerry/client';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { renderFields } from '../output/text.ts';

/** A file of the console as somebody serves it: the same, another one, or none. */
type Compared = 'same' | 'different' | 'missing';

const TIMEOUT_MS = 30_000;
/** More is no file of a console. */
const FILE_BYTES_MAX = 16 * 1024 ** 2;
const NOT_FOUND = 404;

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

const compare = (own: Uint8Array, theirs: Uint8Array | undefined): Compared =>
  theirs === undefined ? 'missing' : Buffer.compare(own, theirs) === 0 ? 'same' : 'different';

/** Compares what a core node serves with the console that this command has, byte by byte. Exit code 1 where they differ. */
export async function checkConsole(context: Context): Promise<number> {
  const { output, coreUrl } = context;
  const { namedBuild, openConsole, PAGE_FILE } = await import('@skerry/console');
  const files = openConsole();
  const build = await files.build();
  const page = await fetchFile(`${coreUrl}/`);
  const served = page === undefined ? '' : namedBuild(new TextDecoder().decode(page));
  const differing: { path: string; is: Compared }[] = [];
  for (const [path, own] of await files.all()) {
    const is = compare(own, path === PAGE_FILE ? page : await fetchFile(`${coreUrl}/${path}`));
    if (is !== 'same') differing.push({ path, is });
  }
  const isSame = differing.length === 0;
  output.result(
    { core: coreUrl, build, served_build: served, is_same: isSame, differing },
    renderFields([
      ['core', coreUrl],
      ['build', build],
      ['served', served === '' ? 'no console' : served],
      ['compared', isSame ? 'the same, byte by byte' : `${differing.length} files differ`],
      ...differing.map(({ path, is }): [string, string] => [`  ${is}`, path]),
    ]),
  );
  return isSame ? EXIT.ok : EXIT.failed;
}
