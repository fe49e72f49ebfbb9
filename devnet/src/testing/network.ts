import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DevnetPorts } from '../ports.ts';
import type { RestartLimits } from '../restart.ts';

export const TEST_DAEMON = fileURLToPath(new URL('./daemon.ts', import.meta.url));

/** Every port chosen by the system. */
export const ANY_PORTS: DevnetPorts = {
  core: 0,
  scheduler: 0,
  compute: 0,
  credit: 0,
  gatewayHttp: 0,
  gatewayHttps: 0,
  gatewayApi: 0,
  status: 0,
};

export const QUICK_LIMITS: RestartLimits = {
  baseMs: 1,
  maxMs: 5,
  steadyMs: 60_000,
  maxFirstFailures: 2,
};

export async function createTestDir(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'skerry-devnet-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Only what hangs takes as long. */
const CONDITION_LIMIT_MS = 100_000;
const CONDITION_INTERVAL_MS = 10;

/** Resolves with the first value that is not undefined or false. */
export async function until<T>(what: string, look: () => T | undefined | false): Promise<T> {
  const deadlineMs = Date.now() + CONDITION_LIMIT_MS;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadlineMs) throw new Error(`not in time: ${what}`);
    await delay(CONDITION_INTERVAL_MS);
  }
}

/** Whether a process exists and is not merely waiting to be collected. */
export function isAlive(pid: number): boolean {
  try {
    // proc(5): the state comes after the name, which is in parentheses.
    const [, state] = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return state !== 'Z' && state !== 'X';
  } catch {
    return false;
  }
}
