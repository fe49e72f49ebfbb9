import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The part of an image's description that says how it is run. */
export interface RunAs {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
}

interface Descriptor {
  readonly digest: string;
}

/** Unpacks an OCI archive as a container engine would, layer upon layer. Gives how it is run. */
export function unpackImage(archive: string, to: string): RunAs {
  const layout = `${to}.layout`;
  for (const path of [to, layout]) mkdirSync(path, { recursive: true });
  execFileSync('tar', ['--extract', '--file', archive, '--directory', layout]);
  const path = ({ digest }: Descriptor) => join(layout, 'blobs', digest.replace(':', '/'));
  const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
  const { manifests } = read(join(layout, 'index.json')) as { manifests: [Descriptor] };
  const { config, layers } = read(path(manifests[0])) as { config: Descriptor; layers: Descriptor[] };
  for (const layer of layers)
    execFileSync('tar', ['--extract', '--gzip', '--file', path(layer), '--directory', to]);
  return (read(path(config)) as { config: RunAs }).config;
}
