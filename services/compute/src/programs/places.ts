import type { Logger } from '@skerry/kit';
import type { AppError, RuntimeName } from '@skerry/protocol';
import type { ControlGroups } from '../groups/control-groups.ts';
import type { Held } from './fair-shares.ts';
import type { LogTail } from './sandbox/log-tail.ts';
import type { RuntimeKit } from './sandbox/runtimes.ts';
import type { Sandbox, SandboxCode } from './sandbox/sandbox.ts';
import type { Attached } from './volumes/volumes.ts';

export interface PoolOptions {
  readonly kits: ReadonlyMap<RuntimeName, RuntimeKit>;
  readonly groups: ControlGroups;
  readonly filterPath: string;
  /** The first of the users that sandboxes run as, one each. */
  readonly uidBase: number;
  /** What all sandboxes may have together. */
  readonly memoryMib: number;
  /** Blank sandboxes of each runtime that wait for a program. */
  readonly spares: number;
  /** How long a program stays warm after its last call. */
  readonly idleMs: number;
  readonly log: Logger;
  /** As PROGRAM_LIMITS has it by default. */
  readonly contendedMs?: number | undefined;
}

/** A program that wants a sandbox. */
export interface Order {
  /** The same for everything that may share a sandbox. */
  readonly key: string;
  /** Who calls: what there is is shared out among these. */
  readonly client: string;
  /** Whose program it is: what is kept running is shared out among these. */
  readonly owner: string;
  readonly runtime: RuntimeName;
  readonly code: SandboxCode;
  /** What its sandbox writes to. */
  readonly log: () => LogTail;
  /** Makes its volumes ready for one sandbox, where it has any. */
  readonly attach?: (() => Promise<Attached>) | undefined;
  /** It takes a sandbox of its own, for as long as it runs. */
  readonly isKept?: boolean;
  /** Ends its waiting for a sandbox, with OVERLOADED and the reason's words. */
  readonly ending?: AbortSignal | undefined;
}

/** Where a call found its sandbox: with its program in it, blank, or not there yet. */
export type Start = 'warm' | 'spare' | 'cold';

/** A sandbox, or the place and the memory for one. `key` is null while it is blank. */
export interface Place {
  readonly slot: number;
  /** It belongs to a program that is kept running, and makes room for nobody. */
  isKept: boolean;
  /** Of a kept program. */
  owner: string;
  /** Another owner's program takes its room. */
  givesWay: boolean;
  runtime: RuntimeName;
  key: string | null;
  reservedMib: number;
  sandbox: Sandbox | undefined;
  /** Its volumes, from when they are asked for: its end lets go of them. */
  attached: Promise<Attached> | undefined;
  state: 'starting' | 'idle' | 'busy' | 'ending';
  /** Once it is ending: resolves when it is gone, whoever began to end it. */
  gone?: Promise<void>;
  idleSinceMs: number;
  /** Whose call runs in it, and since when, while it is busy. */
  client: string;
  busySinceMs: number;
}

/** An order whose volumes are there before its sandbox. Whoever starts that has them from then on; where nobody did, `end` lets go of them. */
export async function attachEarly(order: Order): Promise<{ readonly order: Order; end(): Promise<void> }> {
  const attached = await order.attach?.();
  let isTaken = false;
  const take = async (volumes: Attached) => {
    isTaken = true;
    return volumes;
  };
  return {
    order: { ...order, attach: attached && (() => take(attached)) },
    end: async () => (isTaken ? undefined : attached?.discard()),
  };
}

/** A call that waits for a place. */
export interface Waiter {
  readonly order: Order;
  readonly client: string;
  readonly key: string;
  grant(place: Place): void;
  refuse(error: AppError): void;
}

export const heldBy = ({ client, key, reservedMib, busySinceMs }: Place): Held => ({
  ...{ client, key: key ?? '' },
  ...{ memoryMib: reservedMib, sinceMs: busySinceMs },
});
