import { type Inside, npmComponent } from '../debian/bill.ts';
import { uuidOf } from '../release/sbom.ts';
import type { UnpackedPackage } from './base.ts';

function debianComponent({ name, version, architecture }: UnpackedPackage) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`;
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

/** What is inside the image (CycloneDX, JSON): packages of npm, of Debian, and Node. Pure. */
export function renderImageBill(
  { name, version, epoch }: { readonly name: string; readonly version: string; readonly epoch: number },
  npm: readonly Inside[],
  debian: readonly UnpackedPackage[],
): object {
  const components = [...npm.map(npmComponent), ...debian.map(debianComponent)];
  return {
    ...{ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 },
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([name, components]))}`,
    metadata: {
      timestamp: new Date(epoch * 1000).toISOString(),
      component: { type: 'container', 'bom-ref': name, name, version },
    },
    components,
    dependencies: [{ ref: name, dependsOn: components.map((one) => one['bom-ref']) }],
  };
}
