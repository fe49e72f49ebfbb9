/** What passed an interface, as /proc/net/dev tells it (proc_pid_net(5)): seen from this computer. */
export interface DeviceCounts {
  readonly receivedBytes: number;
  readonly receivedPackets: number;
  readonly sentBytes: number;
  readonly sentPackets: number;
}

/** In the columns behind the interface's name. */
const FIELDS = { receivedBytes: 0, receivedPackets: 1, sentBytes: 8, sentPackets: 9 } as const;

/** All interfaces by their names. Pure. */
export function parseDevices(text: string): Map<string, DeviceCounts> {
  const entries = text.split('\n').flatMap((line): [string, DeviceCounts][] => {
    const [, name, rest] = /^\s*([^\s:]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || rest === undefined) return [];
    const numbers = rest.trim().split(/\s+/).map(Number);
    const counts = Object.fromEntries(
      Object.entries(FIELDS).map(([field, column]) => [field, numbers[column] ?? 0]),
    );
    return [[name, counts as unknown as DeviceCounts]];
  });
  return new Map(entries);
}
