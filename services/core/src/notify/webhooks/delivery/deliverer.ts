import { asDatabaseError, BOUNDLESS, type DiskReserve } from '@skerry/database';
import { Failures, type Logger, type Metrics, pause, runLoop } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import type { EventLog } from '../../events/log.ts';
import { EndpointBook } from '../endpoints.ts';
import type { SealedBox } from '../sealed-box.ts';
import { findFullWebhooks } from './deliveries.ts';
import { Dispatcher, type DispatchObserver } from './dispatcher.ts';
import { DeliveryPlanner, type Round } from './planner.ts';
import type { Sender } from './send.ts';
import { Settler } from './settler.ts';
import { createUpkeep } from './upkeep.ts';

/** Deliveries that wait for one webhook; further events stay in the log until there is room. */
const BACKLOG_MAX = 10_000;
const FULL_INTERVAL_MS = 5_000;
const UPKEEP_INTERVAL_MS = 60_000;
/** While nobody listens, the log is looked at no oftener: each look is a transaction beside those that write. */
const NOBODY_LISTENS_MS = 50;
/** On a disk without room nothing is planned, and that is looked for again this often. */
const FULL_DISK_MS = 1_000;
/** What other processes were asked for, as replays, is found this often. */
const OTHERS_LOOK_MS = 1_000;

export interface DelivererOptions {
  readonly db: Kysely<Schema>;
  readonly events: EventLog;
  readonly secrets: SealedBox;
  readonly sender: Sender;
  readonly observer?: DispatchObserver | undefined;
  readonly now: () => number;
  readonly reserve?: DiskReserve | undefined;
  readonly log: Logger;
  readonly backlogMax?: number;
  /** How many processes deliver; one where left out. */
  readonly deliverers?: () => number;
}

const DELAY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600];
const ATTEMPT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createDispatchObserver(own: Metrics): DispatchObserver {
  const attempts = own.counter(
    'skerry_webhook_attempts_total',
    'attempts of deliveries by what became of them',
    ['outcome'],
  );
  const durations = own.histogram('skerry_webhook_attempt_duration_seconds', 'one attempt', ATTEMPT_SECONDS);
  const delays = own.histogram(
    'skerry_webhook_delay_seconds',
    'from an event to the first attempt of its delivery',
    DELAY_SECONDS,
  );
  return {
    attempted(outcome, seconds) {
      attempts.inc({ outcome });
      durations.observe(seconds);
    },
    begun: (seconds) => delays.observe(seconds),
  };
}

/** Plans what is due now. @returns whether there may be more to do at once */
function createPlan(
  planner: DeliveryPlanner,
  { book, dispatcher }: { book: EndpointBook; dispatcher: Dispatcher },
): () => Promise<boolean> {
  let lookedMs = Number.NEGATIVE_INFINITY;
  let isReplaying = false;
  let isIdle = false;
  return async () => {
    if (isIdle && !(await planner.isDue())) return false;
    const rounds: Round[] = [await planner.run()];
    dispatcher.take(rounds[0]!.taken ?? []);
    if (book.hasBehind) rounds.push(await planner.catchUp());
    if (isReplaying || performance.now() - lookedMs >= OTHERS_LOOK_MS) {
      lookedMs = performance.now();
      const replay = await planner.replay();
      isReplaying = replay.isMore;
      rounds.push(replay);
    }
    for (const { touched } of rounds) if (touched.size > 0) dispatcher.notify(touched);
    const isMore = rounds.some((one) => one.isMore);
    isIdle = !isMore;
    return isMore;
  };
}

/** Plans and delivers until it is disposed of. */
export function startDeliverer(options: DelivererOptions): AsyncDisposable {
  const { db, events, secrets, sender, now, log, backlogMax = BACKLOG_MAX, reserve = BOUNDLESS } = options;
  const book = new EndpointBook(secrets, options.deliverers);
  const settler = new Settler({ db, now, log });
  const dispatcher = new Dispatcher({ ...options, book, settler });
  const planner = new DeliveryPlanner({ db, book, capacity: dispatcher, now });
  const stop = new AbortController();
  const { signal } = stop;
  const failures = new Failures({ log, what: 'events could not be planned; retrying' });
  const plan = createPlan(planner, { book, dispatcher });

  const loop = async () => {
    while (!signal.aborted) {
      const { wakes } = events;
      try {
        if (!reserve.hasRoom) {
          // The reserve says so, and when that is over.
          await pause(FULL_DISK_MS, signal);
          continue;
        }
        const isMore = await plan();
        failures.clear();
        if (isMore) continue;
        await events.waitForMore(wakes, signal, OTHERS_LOOK_MS);
        if (book.liveCount === 0) await pause(NOBODY_LISTENS_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        await pause(failures.note(asDatabaseError(error) ?? error), signal);
      }
    }
  };
  const rounds = [
    loop(),
    runLoop({ name: 'webhook backlog', intervalMs: FULL_INTERVAL_MS, signal, log }, async () =>
      planner.putBehind(await findFullWebhooks(db, backlogMax)),
    ),
    runLoop(
      { name: 'webhook upkeep', intervalMs: UPKEEP_INTERVAL_MS, signal, log },
      createUpkeep({ db, log, now }),
    ),
  ];
  dispatcher.start();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(rounds);
      await dispatcher.close();
      sender.close();
    },
  };
}
