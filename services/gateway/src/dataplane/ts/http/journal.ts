import type { ErrorCode } from '@skerry/protocol';
import { networkOf } from '../../../refusals/network.ts';
import {
  type DataPlaneOptions,
  HTTP_CLASSES,
  HTTP_OUTCOMES,
  HTTP_REFUSALS,
  type HttpAccessRecord,
  type HttpClass,
  type HttpCounts,
  type HttpOutcome,
  type HttpRefusal,
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

const isRefusal = (text: string): text is HttpRefusal => (HTTP_REFUSALS as readonly string[]).includes(text);

/** Why a request was refused that was answered with the page of a code. */
export function refusalOf(code: ErrorCode): HttpRefusal {
  const reason = code.toLowerCase();
  return isRefusal(reason) ? reason : 'invalid_parameters';
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

/** Counts requests by their class and what became of them, tells whose were refused, and tells of all where the access log is on. */
export class HttpJournal {
  readonly counts = Object.fromEntries(
    HTTP_CLASSES.map((name) => [name, Object.fromEntries(HTTP_OUTCOMES.map((outcome) => [outcome, 0]))]),
  ) as Record<HttpClass, Record<HttpOutcome, number>> satisfies HttpCounts;
  readonly refusals = Object.fromEntries(HTTP_REFUSALS.map((reason) => [reason, 0])) as Record<
    HttpRefusal,
    number
  >;
  readonly #access: DataPlaneOptions['access'];
  readonly #onRefused: DataPlaneOptions['onRefused'];
  #sinceTold = 0;

  constructor({ access, onRefused }: Pick<DataPlaneOptions, 'access' | 'onRefused'>) {
    this.#access = access;
    this.#onRefused = onRefused;
  }

  /** Refused: a request, or a connection that never came to one. */
  refused(clientAddress: string, reason: HttpRefusal): void {
    this.refusals[reason]++;
    this.#onRefused?.({ network: networkOf(clientAddress), count: 1, protocol: 'http', reason });
  }

  /** A request begins; what is returned is called once, when it is over. */
  begin(trace: HttpTrace): (end: HttpEnd) => void {
    const startedUnixMs = Date.now();
    const started = performance.now();
    return ({ status, refusedWith }) => {
      const outcome = outcomeOf(refusedWith, status);
      this.counts[trace.class][outcome]++;
      if (refusedWith !== undefined && outcome !== 'failed')
        this.refused(trace.clientAddress, refusalOf(refusedWith));
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
