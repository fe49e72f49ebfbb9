import type { ErrorCode } from '@skerry/protocol';
import {
  type DataPlaneOptions,
  HTTP_CLASSES,
  HTTP_OUTCOMES,
  type HttpAccessRecord,
  type HttpClass,
  type HttpCounts,
  type HttpOutcome,
} from '../../port.ts';

const NOT_ROUTED: ReadonlySet<ErrorCode> = new Set(['HOSTNAME_NOT_FOUND', 'INSTANCE_NOT_ROUTED']);
const FAILED: ReadonlySet<ErrorCode> = new Set(['INSTANCE_UNREACHABLE', 'INSTANCE_TIMED_OUT']);
const ACME_CHALLENGE = '/.well-known/acme-challenge/';

/** What kind of request this is: a challenge of a certificate authority counts as one however it comes. */
export const classOf = (path: string | undefined, otherwise: HttpClass): HttpClass =>
  path?.startsWith(ACME_CHALLENGE) ? 'acme_challenge' : otherwise;

function outcomeOf(refusedWith: ErrorCode | undefined, status: number | null): HttpOutcome {
  if (refusedWith === undefined) return status === null ? 'gone' : 'forwarded';
  if (NOT_ROUTED.has(refusedWith)) return 'not_routed';
  return FAILED.has(refusedWith) ? 'failed' : 'refused';
}

/** Of what a client may write as it likes, so much goes into a line of the log: a longer name or method leads nowhere anyway. */
const MAX_LOGGED_CHARS = 260;
const cut = (text: string) => text.slice(0, MAX_LOGGED_CHARS);

/** What is known of a request while it is under way. */
export interface HttpTrace {
  readonly class: HttpClass;
  readonly clientAddress: string;
  readonly method: string;
  /** As the client wrote it; null where it wrote none. */
  readonly authority: string | null;
}

/** What came of it, when it is over. */
export interface HttpEnd {
  /** Null where no answer was begun. */
  readonly status: number | null;
  /** Of the gateway's own page, where it answered with one. */
  readonly refusedWith: ErrorCode | undefined;
}

/** Counts requests by their class and what became of them, and tells of them where the access log is on. */
export class HttpJournal {
  readonly counts = Object.fromEntries(
    HTTP_CLASSES.map((name) => [name, Object.fromEntries(HTTP_OUTCOMES.map((outcome) => [outcome, 0]))]),
  ) as Record<HttpClass, Record<HttpOutcome, number>> satisfies HttpCounts;
  readonly #access: DataPlaneOptions['access'];
  #sinceTold = 0;

  constructor(access: DataPlaneOptions['access']) {
    this.#access = access;
  }

  /** A request begins; what is returned is called once, when it is over. */
  begin(trace: HttpTrace): (end: HttpEnd) => void {
    const startedUnixMs = Date.now();
    const started = performance.now();
    return ({ status, refusedWith }) => {
      const outcome = outcomeOf(refusedWith, status);
      this.counts[trace.class][outcome]++;
      if (!this.#access?.tellHttp || ++this.#sinceTold < this.#access.every) return;
      this.#sinceTold = 0;
      const record: HttpAccessRecord = {
        startedUnixMs,
        durationMs: Math.round(performance.now() - started),
        ...trace,
        method: cut(trace.method),
        authority: trace.authority === null ? null : cut(trace.authority),
        status,
        outcome,
      };
      this.#access.tellHttp(record);
    };
  }
}
