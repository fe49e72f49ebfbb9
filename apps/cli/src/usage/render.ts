import { plainText, renderBytes } from '../output/text.ts';
import type { RatedUsage } from './rates.ts';

export const USAGE_HEAD = [
  'GUEST',
  'OWNER',
  'CPU',
  'CPU TIME',
  'MEMORY',
  'DISK',
  'IN/S',
  'OUT/S',
  'IN',
  'OUT',
  'PACKETS IN/OUT',
  'SINCE',
] as const;

/** For people; with --json the whole is told. */
const CHARS_SHOWN = 12;
const NONE = '-';
const SECONDS = { minute: 60, hour: 3_600 } as const;

const shortOf = (text: string) => plainText(text).slice(0, CHARS_SHOWN);
const orNone = <T>(value: T | null | undefined, render: (value: T) => string) =>
  value === null || value === undefined ? NONE : render(value);
const percentOf = (share: number) => `${(share * 100).toFixed(1)} %`;
const ofGranted = (bytes: number | null, grantedBytes: number) =>
  `${orNone(bytes, renderBytes)} of ${renderBytes(grantedBytes)}`;

/** `12.3 s`, `4 min 5 s`, `7 h 8 min` */
function renderSpent(seconds: number): string {
  if (seconds < SECONDS.minute) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / SECONDS.minute);
  if (seconds < SECONDS.hour) return `${minutes} min ${Math.floor(seconds % SECONDS.minute)} s`;
  return `${Math.floor(seconds / SECONDS.hour)} h ${minutes % 60} min`;
}

/** A guest by what other commands find it by: its host name, or the start of a program's hash. */
const nameOf = ({ kind, host_name: name, item_hash: hash, phase }: RatedUsage) => {
  if (kind === 'program') return `program ${shortOf(hash)}`;
  const state = phase === 'running' ? '' : ` (${phase ?? 'new'})`;
  return `${plainText(name ?? shortOf(hash))}${state}`;
};

export function usageRow(one: RatedUsage): string[] {
  const { rates, cpu, memory, disk, network, since } = one;
  return [
    nameOf(one),
    orNone(one.owner, shortOf),
    orNone(rates?.cpu, percentOf),
    orNone(cpu.seconds, renderSpent),
    ofGranted(memory.bytes, memory.granted_bytes),
    orNone(disk, ({ bytes, granted_bytes: granted }) => ofGranted(bytes, granted)),
    orNone(rates?.in_bytes, (bytes) => renderBytes(Math.round(bytes))),
    orNone(rates?.out_bytes, (bytes) => renderBytes(Math.round(bytes))),
    orNone(network?.in_bytes, renderBytes),
    orNone(network?.out_bytes, renderBytes),
    orNone(network, ({ in_packets: to, out_packets: from }) => `${to}/${from}`),
    orNone(since, (time) => time.replace(/\.\d+Z$/, 'Z')),
  ];
}
