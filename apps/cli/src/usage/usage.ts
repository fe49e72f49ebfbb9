import { setTimeout as delay } from 'node:timers/promises';
import { call } from '@skerry/client/call';
import { urlOfListener } from '@skerry/kit';
import { type GuestUsageListView, USAGE_API } from '@skerry/protocol/api/compute/usage';
import { AppError } from '@skerry/protocol/forms';
import { describeNode } from '../backup/role.ts';
import type { Context } from '../context.ts';
import type { DaemonOptions } from '../network/daemon.ts';
import { type RatedUsage, rateUsage, type Sort, sortUsage } from './rates.ts';
import { USAGE_HEAD, usageRow } from './render.ts';

export interface UsageOptions extends DaemonOptions {
  readonly node?: string;
  readonly sort: Sort;
  readonly limit: number;
  readonly watch?: boolean;
  readonly interval: number;
}

/** Of a node with a thousand machines, on a server that is busy with them. */
const ANSWER_MS = 60_000;
/** On a terminal each table takes the place of the one before (ECMA-48, CUP and ED). */
const CLEAR = '\u001b[H\u001b[2J';

async function urlOf(context: Context, { node, settings }: UsageOptions): Promise<string> {
  if (node !== undefined) return node;
  const { config } = await describeNode(context, 'compute', { ...(settings && { settings }) });
  return urlOfListener('http', config.host as string, config.port as number);
}

async function read(url: string): Promise<GuestUsageListView> {
  return call(url, USAGE_API.listGuestUsage, { query: {} }, { timeoutMs: ANSWER_MS }).catch(
    (error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'UPSTREAM_UNAVAILABLE') throw error;
      throw new AppError(error.code, `${error.message}; is it the compute node's address?`, {
        details: { hint: 'start the node, or name its settings with --settings, or its address with --node' },
      });
    },
  );
}

interface Told {
  readonly read_at: string;
  /** Seconds between the two readings that rates are of. */
  readonly over_seconds: number;
  /** All guests; `guests` has as many as were asked for. */
  readonly total: number;
  readonly guests: readonly RatedUsage[];
}

function tellOf(first: GuestUsageListView, second: GuestUsageListView, { sort, limit }: UsageOptions): Told {
  const sorted = sortUsage(rateUsage(first, second), sort);
  return {
    read_at: second.read_at,
    over_seconds: (Date.parse(second.read_at) - Date.parse(first.read_at)) / 1_000,
    total: sorted.length,
    guests: sorted.slice(0, limit),
  };
}

function renderTold({ guests, total }: Told, { output }: Context): string {
  const table = output.table(USAGE_HEAD, guests.map(usageRow), 'no instances, and no programs in memory');
  return total > guests.length ? `${table}\n${total - guests.length} more; --limit shows them` : table;
}

/**
 * What each guest of this server's compute node takes. Rates are of two readings, since the node keeps none. With `watch`, again and
 * again until it is interrupted.
 */
export async function showUsage(context: Context, options: UsageOptions): Promise<void> {
  const { output } = context;
  const url = await urlOf(context, options);
  let last = await read(url);
  do {
    await delay(options.interval);
    const next = await read(url);
    const told = tellOf(last, next, options);
    last = next;
    if (options.watch) {
      if (output.stdout.isTTY === true && !output.json) output.stdout.write(CLEAR);
      output.next(told, renderTold(told, context));
    } else output.result(told, renderTold(told, context));
  } while (options.watch);
}
