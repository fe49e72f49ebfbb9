import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../source.ts';

const PAGE = 'docs/container.md';

/** What the soak follows, by how each block begins. */
const BLOCKS = {
  load: 'sha256sum --check',
  start: 'cd deploy',
  use: 'podman run --rm --network host localhost/skerry:0.1.0 status',
  boot: 'sudo loginctl',
  save: 'podman exec skerry-core skerry backup',
} as const;

export type BlockName = keyof typeof BLOCKS;
export const BLOCK_NAMES = Object.keys(BLOCKS) as BlockName[];

/** A block of the page, as a person copies it. Throws where the page has none that begins so, or several. */
export function blockOf(name: BlockName): string {
  const page = readFileSync(join(ROOT, PAGE), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text!);
  const found = blocks.filter((text) => text.startsWith(BLOCKS[name]));
  if (found.length !== 1)
    throw new Error(`${PAGE} has ${found.length} blocks that begin with ${BLOCKS[name]}`);
  return found[0]!;
}
