import { Failures, type Logger, pause } from '@skerry/kit';
import type { Lease } from './lease.ts';
import type { LedRole } from './roles.ts';

const FAILED_REST_MAX_MS = 10_000;

export interface LeadOptions {
  readonly role: LedRole;
  readonly lease: Lease;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** What is disposed of when another process may lead; the signal ends then, too. */
export type BeginLeading = (signal: AbortSignal) => Promise<AsyncDisposable>;

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** The lease has ended, or the work; where the node ends nobody is told. */
function tellEnded(held: AbortSignal, { role, signal, log }: LeadOptions): void {
  if (!signal.aborted) log.warn({ role, why: held.reason?.message }, 'this process does not lead any more');
}

/** Works until the lease or the node ends. */
async function work(held: AbortSignal, { signal }: LeadOptions, begin: BeginLeading, onBegun: () => void) {
  const ended = AbortSignal.any([signal, held]);
  await using _work = await begin(ended);
  onBegun();
  await aborted(ended);
}

async function keepLeading(options: LeadOptions, begin: BeginLeading): Promise<void> {
  const { role, lease, signal, log } = options;
  const what = 'this process could not do what it leads; retrying, or another one does it';
  const failures = new Failures({ log, what, fields: { role }, maxMs: FAILED_REST_MAX_MS });
  for (;;) {
    const held = await lease.wait(signal);
    if (!held || signal.aborted) return;
    log.info({ role }, 'this process leads now');
    try {
      await work(held, options, begin, () => failures.clear());
    } catch (error) {
      if (signal.aborted) return;
      const restMs = failures.note(error);
      // Whoever can do it may have it meanwhile.
      await lease.pass(restMs).catch(() => {});
      await pause(restMs, signal);
    }
    tellEnded(held, options);
  }
}

/**
 * Does the work of a role whenever this process leads, until the signal ends.
 * @returns when it has begun, or at once where another process leads: rejects where the work cannot begin at the start; and when all has ended
 */
export function lead(
  options: LeadOptions,
  begin: BeginLeading,
): { readonly begun: Promise<void>; readonly ended: Promise<void> } {
  const first = options.lease.held;
  if (!first) return { begun: Promise.resolve(), ended: keepLeading(options, begin) };
  const { promise: begun, resolve, reject } = Promise.withResolvers<void>();
  const ended = work(first, options, begin, resolve).then(
    () => {
      tellEnded(first, options);
      return keepLeading(options, begin);
    },
    // A node that cannot do at its start what its settings say does not start.
    (error) => reject(error),
  );
  return { begun, ended };
}
