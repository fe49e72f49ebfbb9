import { followInFile, type Logger, readJsonOrSetAside } from '@skerry/kit';
import { fieldsOf } from '@skerry/protocol/forms';
import type { NetworkChange } from './health.ts';
import type { Departure } from './planning/departures.ts';

/** What holds nodes back outlives the process: else each restart would be a chance to begin anew. */

const isTime = (value: unknown): value is number => Number.isSafeInteger(value);

function parseDeparture(value: unknown): Departure | undefined {
  const { leftMs, heldMs, fromMs, isSilent, isAway } = fieldsOf(value);
  if (!isTime(leftMs) || !isTime(heldMs) || !isTime(fromMs)) return undefined;
  return { leftMs, heldMs, fromMs, isSilent: isSilent === true, isAway: isAway === true };
}

function parseNetworkChange(value: unknown): NetworkChange | undefined {
  const { prefix, sinceMs, heldMs } = fieldsOf(value);
  if (typeof prefix !== 'string' || !isTime(sinceMs) || !isTime(heldMs)) return undefined;
  return { prefix, sinceMs, heldMs };
}

/** How a thing is read, and its times moved to another clock. */
interface Kind<T> {
  readonly parse: (value: unknown) => T | undefined;
  /** @param moved gives a time by the other clock */
  readonly move: (value: T, moved: (timeMs: number) => number) => T;
}

export const DEPARTURES: Kind<Departure> = {
  parse: parseDeparture,
  move: (one, moved) => ({ ...one, leftMs: moved(one.leftMs), fromMs: moved(one.fromMs) }),
};

export const NETWORK_CHANGES: Kind<NetworkChange> = {
  parse: parseNetworkChange,
  move: (one, moved) => ({ ...one, sinceMs: moved(one.sinceMs) }),
};

interface HeldBackOptions {
  /** Unix milliseconds: what the file has. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets: what the process has. */
  readonly uptime: () => number;
  readonly log: Logger;
}

/** What is kept of nodes in a file, by their ids. */
export interface HeldBack<T> extends AsyncDisposable {
  /** As the process before this one knew it. */
  readonly before: ReadonlyMap<string, T>;
  /** @param list what is known now; asked soon after each `changed` */
  follow(list: () => Iterable<readonly [string, T]>): void;
  changed(): void;
}

/** Opens such a file. One that cannot be read costs what it held; a clock that was set back makes nothing newer than now. */
export async function openHeldBack<T>(
  path: string,
  { parse, move }: Kind<T>,
  { now, uptime, log }: HeldBackOptions,
): Promise<HeldBack<T>> {
  const instead = 'nodes that left often, or changed their network, are held back no more';
  const read = await readJsonOrSetAside(path, { parse: fieldsOf, instead, log });
  const before = new Map<string, T>();
  const toUptime = (unixMs: number) => uptime() - Math.max(0, now() - unixMs);
  for (const [nodeId, value] of Object.entries(read ?? {})) {
    const one = parse(value);
    if (one !== undefined) before.set(nodeId, move(one, toUptime));
  }
  let list: () => Iterable<readonly [string, T]> = () => before;
  const textOf = () => {
    const toUnix = (uptimeMs: number) => Math.round(now() - (uptime() - uptimeMs));
    const rows = Array.from(list(), ([nodeId, one]) => [nodeId, move(one, toUnix)] as const);
    return `${JSON.stringify(Object.fromEntries(rows))}\n`;
  };
  const file = followInFile(path, textOf, (err) =>
    log.warn({ err, path }, 'which nodes are held back could not be kept for the next start'),
  );
  return {
    before,
    follow(next) {
      list = next;
    },
    changed: () => file.changed(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  };
}
