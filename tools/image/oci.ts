import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

/**
 * A container image as files: an OCI image layout (opencontainers/image-spec v1.1, image-layout.md), which `podman load` and
 * `docker load` take as a tar. Everything in it has the hash of its bytes as its name.
 */

const OCI = 'application/vnd.oci.image';
const MEDIA = {
  index: `${OCI}.index.v1+json`,
  manifest: `${OCI}.manifest.v1+json`,
  config: `${OCI}.config.v1+json`,
  layer: `${OCI}.layer.v1.tar+gzip`,
} as const;

export interface Layer {
  /** `sha256:…` of the packed file. */
  readonly digest: string;
  readonly bytes: number;
  /** `sha256:…` of the tar inside. */
  readonly diffId: string;
  /** What made it, for `podman history`. */
  readonly createdBy: string;
}

/** What the image says of itself, and how it is run (config.md of the specification). */
export interface ImageDescription {
  /** As it is called when it is loaded: `localhost/skerry:1.2.3`. */
  readonly name: string;
  /** As Go names it: `amd64`. */
  readonly architecture: string;
  /** Seconds since 1970. */
  readonly epoch: number;
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly workingDirectory: string;
  readonly volumes: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const blobsOf = (layout: string) => join(layout, 'blobs/sha256');

/** Counts and hashes what passes. */
function createMeter() {
  const hash = createHash('sha256');
  let bytes = 0;
  const through = new Transform({
    transform(part: Buffer, _encoding, done) {
      hash.update(part);
      bytes += part.length;
      done(undefined, part);
    },
  });
  return { through, read: () => ({ digest: `sha256:${hash.digest('hex')}`, bytes }) };
}

/** Packs a tar into the layout. */
export async function addLayer(layout: string, tar: string, createdBy: string): Promise<Layer> {
  mkdirSync(blobsOf(layout), { recursive: true });
  const draft = join(layout, 'layer.draft');
  const [plain, packed] = [createMeter(), createMeter()];
  await pipeline(
    createReadStream(tar),
    plain.through,
    createGzip({ level: 6 }),
    packed.through,
    createWriteStream(draft),
  );
  const { digest, bytes } = packed.read();
  renameSync(draft, join(blobsOf(layout), digest.slice('sha256:'.length)));
  return { digest, bytes, diffId: plain.read().digest, createdBy };
}

function addJson(layout: string, mediaType: string, value: unknown): Descriptor {
  const text = JSON.stringify(value);
  const digest = createHash('sha256').update(text).digest('hex');
  writeFileSync(join(blobsOf(layout), digest), text);
  return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(text) };
}

/** Pure. */
function renderConfig(image: ImageDescription, layers: readonly Layer[]) {
  const created = new Date(image.epoch * 1000).toISOString();
  return {
    created,
    architecture: image.architecture,
    os: 'linux',
    config: {
      User: image.user,
      Env: Object.entries(image.environment).map(([name, value]) => `${name}=${value}`),
      Entrypoint: image.entrypoint,
      Cmd: image.command,
      WorkingDir: image.workingDirectory,
      Volumes: Object.fromEntries(image.volumes.map((path) => [path, {}])),
      Labels: image.labels,
      StopSignal: 'SIGTERM',
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ createdBy }) => ({ created, created_by: createdBy })),
  };
}

/** Writes what stands beside the layers. Gives the digest that names the image. */
export function finishLayout(layout: string, image: ImageDescription, layers: readonly Layer[]): string {
  const manifest = addJson(layout, MEDIA.manifest, {
    schemaVersion: 2,
    mediaType: MEDIA.manifest,
    config: addJson(layout, MEDIA.config, renderConfig(image, layers)),
    layers: layers.map(({ digest, bytes }) => ({ mediaType: MEDIA.layer, digest, size: bytes })),
    annotations: image.labels,
  });
  const entry = {
    ...manifest,
    platform: { architecture: image.architecture, os: 'linux' },
    // The first is podman's, the second docker's.
    annotations: {
      'org.opencontainers.image.ref.name': image.name,
      'io.containerd.image.name': image.name,
    },
  };
  const index = { schemaVersion: 2, mediaType: MEDIA.index, manifests: [entry] };
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return manifest.digest;
}
