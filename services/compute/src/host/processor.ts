import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What /proc/cpuinfo says of a processor, as far as users ask for it. Nothing is made up: what it does not say is null. */
export interface Processor {
  readonly vendor: string | null;
  readonly model: string | null;
  readonly frequencyMhz: number | null;
  /** Of `sev`, `sev_es`, `sev_snp`. */
  readonly features: string[];
}

const CONFIDENTIAL_FLAGS = ['sev', 'sev_es', 'sev_snp'];

export function parseCpuinfo(text: string): Processor {
  const field = (name: string) => new RegExp(`^${name}\\s*:\\s*(.+?)\\s*$`, 'm').exec(text)?.[1] ?? null;
  const flags = (field('flags') ?? '').split(' ');
  const frequency = Number(field('cpu MHz'));
  return {
    vendor: field('vendor_id'),
    model: field('model name'),
    frequencyMhz: frequency > 0 ? frequency : null,
    features: CONFIDENTIAL_FLAGS.filter((flag) => flags.includes(flag)),
  };
}

export interface GpuDevice {
  readonly vendor: string;
  readonly device_name: string | null;
  /** PCI class: 0300 is a display, 0302 a processor of graphics without one. */
  readonly device_class: '0300' | '0302';
  /** `10de:2504` */
  readonly device_id: string;
  readonly pci_host: string;
}

const VENDORS: Readonly<Record<string, string>> = { '10de': 'NVIDIA', '1002': 'AMD', '8086': 'Intel' };
const PCI = '/sys/bus/pci/devices';

/**
 * The graphics processors that the kernel shows. Devices of virtual displays are of other vendors and left out.
 * @param directory of the kernel's list; another one in tests
 */
export async function listGpus(directory = PCI): Promise<GpuDevice[]> {
  const names = await readdir(directory).catch(() => []);
  const found: GpuDevice[] = [];
  for (const name of names.sort()) {
    const read = (file: string) =>
      readFile(join(directory, name, file), 'utf8').then(
        (text) => text.trim().replace(/^0x/, ''),
        () => '',
      );
    const deviceClass = (await read('class')).slice(0, 4);
    const vendor = await read('vendor');
    if ((deviceClass !== '0300' && deviceClass !== '0302') || !VENDORS[vendor]) continue;
    found.push({
      vendor: VENDORS[vendor],
      device_name: (await read('label')) || null,
      device_class: deviceClass,
      device_id: `${vendor}:${await read('device')}`,
      pci_host: name.replace(/^0000:/, ''),
    });
  }
  return found;
}
