import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { uuidOf } from '../release/sbom.ts';
import { TREE } from './layout.ts';
import type { DebianPackage } from './packages.ts';

/** A package of npm, as its manifest names it. */
export interface Inside {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** `@skerry/kit` and version 1 give `pkg:npm/%40skerry/kit@1` (package-url, npm). */
const npmUrl = ({ name, version }: Inside) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

export function npmComponent(one: Inside) {
  const purl = npmUrl(one);
  return {
    ...{ type: 'library', 'bom-ref': purl, name: one.name, version: one.version, purl },
    ...(one.license !== undefined && { licenses: [{ license: { name: one.license } }] }),
  };
}

/** Packages that are at most once at each place of a tree, below directories called node_modules. */
const MANIFESTS = `${TREE.slice(1)}/**/node_modules/{*,@*/*}/package.json`;

/** Every package of npm in the tree of a Debian package, each version once, by name. */
export function listInside(root: string): Inside[] {
  const found = new Map<string, Inside>();
  for (const path of globSync(MANIFESTS, { cwd: root })) {
    const manifest = JSON.parse(readFileSync(join(root, path), 'utf8')) as Partial<Inside>;
    const { name, version, license } = manifest;
    // Manifests that only say how the files beside them are read have no name.
    if (name === undefined || version === undefined) continue;
    const one = { name, version, ...(typeof license === 'string' && { license }) };
    found.set(npmUrl(one), one);
  }
  return [...found.keys()].sort().map((url) => found.get(url)!);
}

/** The names of `libc6 (>= 2.36)` and of each of `systemd | systemd-standalone-sysusers`. */
const namesIn = (depends: string) => depends.split('|').map((one) => one.replace(/\(.*\)/, '').trim());

/**
 * What is inside a Debian package (CycloneDX 1.5, JSON), and what Debian installs with it: of the latter the names alone, since the
 * versions are those of the machine.
 */
export function renderBill(
  { name, summary, depends }: Pick<DebianPackage, 'name' | 'summary' | 'depends'>,
  { version, architecture, epoch }: { version: string; architecture: string; epoch: number },
  inside: readonly Inside[],
): object {
  const url = `pkg:deb/${name}@${version}?arch=${architecture}`;
  const libraries = inside.map(npmComponent);
  const debian = [...new Set(depends.flatMap(namesIn))].sort().map((one) => {
    const purl = `pkg:deb/debian/${one}`;
    return { type: 'library', 'bom-ref': purl, name: one, purl, scope: 'excluded' };
  });
  const components = [...libraries, ...debian];
  return {
    ...{ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 },
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([url, components]))}`,
    metadata: {
      timestamp: new Date(epoch * 1000).toISOString(),
      component: { type: 'application', 'bom-ref': url, name, version, description: summary, purl: url },
    },
    components,
    dependencies: [{ ref: url, dependsOn: components.map((one) => one['bom-ref']) }],
  };
}
