import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { createLock } from './lock.ts';
import type { PublishedManifest } from './manifests.ts';
import type { Release } from './release.ts';
import { runNpm } from './run-npm.ts';
import { writeJson } from './stage.ts';

/** A UUID made of a hash (RFC 9562 §5.8): the same for the same content. */
export function uuidOf(content: string): string {
  const hex = createHash('sha256').update(content).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

interface CycloneDx {
  readonly metadata: { readonly component: object };
}

/**
 * What is inside a package and what is installed with it, as npm writes it of the lockfile (CycloneDX, JSON). npm puts the time,
 * a random number and the name of the folder into it; they are those of the release here. Gives the file's name.
 */
export function writeBillOfMaterials(
  file: string,
  manifest: PublishedManifest,
  lock: ReturnType<typeof createLock>,
  { files, epoch }: Release,
): string {
  const { files: _files, ...read } = manifest;
  const dir = mkdtempSync(join(tmpdir(), 'skerry-sbom-'));
  try {
    writeJson(join(dir, 'package.json'), read);
    writeJson(join(dir, 'package-lock.json'), lock);
    const type = manifest.bin ? 'application' : 'library';
    const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', `--sbom-type=${type}`];
    const made = JSON.parse(runNpm(args, dir)) as unknown as CycloneDx;
    const bill = {
      ...made,
      serialNumber: `urn:uuid:${uuidOf(JSON.stringify(lock))}`,
      metadata: {
        ...made.metadata,
        timestamp: new Date(epoch * 1000).toISOString(),
        component: { ...made.metadata.component, name: manifest.name },
      },
    };
    const name = file.replace(/\.tgz$/, '.cdx.json');
    writeJson(join(files, name), bill);
    return name;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
