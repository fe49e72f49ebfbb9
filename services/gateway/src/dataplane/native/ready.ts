import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Compiled, runBriefly } from '@skerry/kit';
import { USAGE_EXIT_CODE } from './build.ts';
import { LAYOUT_NUMBER } from './layout.ts';

/** Of native/main.c, where it was made for another layout. */
const FOREIGN_EXIT_CODE = 3;

/**
 * A native plane that was compiled elsewhere, where it is the one that was meant and this machine runs it; else says why not.
 *
 * @param sha256 in hexadecimal; undefined where any program is taken
 */
export async function checkReadyPlane(path: string, sha256: string | undefined): Promise<Compiled> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    return { missing: `cannot read ${path}: ${(error as Error).message}` };
  }
  const found = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== undefined && found !== sha256.toLowerCase())
    return { missing: `the SHA-256 of ${path} is ${found}, not ${sha256}` };
  const { code, said } = await runBriefly(path, [`layout=${LAYOUT_NUMBER}`]);
  if (code === USAGE_EXIT_CODE) return { path };
  if (code === FOREIGN_EXIT_CODE) return { missing: `${path} is of another release` };
  return { missing: `${path} does not run here: ${said.trim() || `it ended with ${code}`}` };
}
