import { INSTANCE_SIZES } from '@skerry/protocol/content/sizes';
import { numberIn, rangeText } from './range.ts';

/** What is typed to ask for a machine. */
export interface MachineForm {
  readonly name: string;
  readonly image: string;
  /** Digits. */
  readonly cpu: string;
  /** MiB. */
  readonly memory: string;
  /** GiB. */
  readonly disk: string;
  /** `22, 80, 443, udp:443` */
  readonly ports: string;
  readonly sshKey: string;
}

export interface MachineSize {
  readonly title: string;
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
}

/** Sizes that are offered; any other can be typed. */
export const SIZES: readonly MachineSize[] = [
  { title: 'Tiny', cpu: 1, memory: 512, disk: 4 },
  { title: 'Small', cpu: 1, memory: 2_048, disk: 20 },
  { title: 'Medium', cpu: 2, memory: 4_096, disk: 40 },
  { title: 'Large', cpu: 4, memory: 8_192, disk: 80 },
];

const PORTS = { minimum: 1, maximum: 65_535 } as const;

export type Read =
  | { readonly content: Readonly<Record<string, unknown>> }
  | { readonly field: keyof MachineForm; readonly fault: string };

const UDP = 'udp:';
export const PORTS_FAULT = 'The ports are numbers up to 65535, such as 22, 443, udp:443.';

/** What is open by TCP, and by UDP if anything is; undefined where a port is none. */
export function firewallOf(text: string) {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  const allowedPorts = portsOf(parts.filter((part) => !part.startsWith(UDP)));
  const udp = portsOf(parts.filter((part) => part.startsWith(UDP)).map((part) => part.slice(UDP.length)));
  return allowedPorts && udp && { allowedPorts, ...(udp.length === 0 ? {} : { allowedUdpPorts: udp }) };
}

function portsOf(texts: readonly string[]): readonly number[] | undefined {
  const ports = texts.map((text) => numberIn(PORTS, text));
  return ports.every((port) => port !== undefined) ? [...new Set(ports)] : undefined;
}

interface Open {
  readonly allowedPorts: readonly number[];
  readonly allowedUdpPorts?: readonly number[] | null | undefined;
}

/** What is open, as it is typed. */
export const portsText = ({ allowedPorts, allowedUdpPorts }: Open): string =>
  [...allowedPorts, ...(allowedUdpPorts ?? []).map((port) => `${UDP}${port}`)].join(', ');

/** The content of the message, or the first field that is wrong. The core node judges the rest. */
export function readMachineForm(form: MachineForm): Read {
  const cpu = numberIn(INSTANCE_SIZES.cpu, form.cpu);
  const memory = numberIn(INSTANCE_SIZES.memory, form.memory);
  const disk = numberIn(INSTANCE_SIZES.disk, form.disk);
  const firewall = firewallOf(form.ports);
  const key = form.sshKey.trim();
  if (form.name.trim() === '') return { field: 'name', fault: 'A machine has a name.' };
  if (form.image.trim() === '')
    return { field: 'image', fault: 'A machine has an image, such as debian:12.' };
  if (!cpu) return { field: 'cpu', fault: `The cores are ${rangeText(INSTANCE_SIZES.cpu)}.` };
  if (!memory) return { field: 'memory', fault: `The memory is ${rangeText(INSTANCE_SIZES.memory, 'MiB')}.` };
  if (!disk) return { field: 'disk', fault: `The disk is ${rangeText(INSTANCE_SIZES.disk, 'GiB')}.` };
  if (!firewall) return { field: 'ports', fault: PORTS_FAULT };
  if (/PRIVATE KEY/.test(key))
    return { field: 'sshKey', fault: 'This is a private key. The public one ends in .pub and is one line.' };
  if (!/^(ssh-|ecdsa-|sk-)\S+ \S+/.test(key) || key.includes('\n'))
    return { field: 'sshKey', fault: 'An ssh key is one public line, such as ssh-ed25519 AAAA… you@home.' };
  const name = form.name.trim();
  const content = { name, cpu, memory, disk, image: form.image.trim(), ssh_key: key };
  return { content: { ...content, firewall } };
}
