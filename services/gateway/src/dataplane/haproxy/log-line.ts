import { TLS_OUTCOMES, type TlsOutcome } from '../figures.ts';
import type { AccessRecord, RouteFailure } from '../port.ts';

/** What HAProxy tells of a connection that has ended (configuration manual, "Custom log format"). */
export const LOG_FORMAT = 'skerry %Ts %ms %Tt %ci %cp %[var(txn.name)] %[var(txn.outcome)] %U %B %ts';
const LINE = /^skerry (\d+) (\d+) (\d+) ([0-9a-fA-F.:]+) (\d+) (\S+) (\S+) (\d+) (\d+) (\S)(\S)$/;

export interface LogLine {
  readonly record: AccessRecord & { readonly protocol: 'tls' };
  /** Where the instance did not take the connection. */
  readonly failure: RouteFailure | undefined;
}

/** Of a connection that ended while the one to the instance was opening, by who or what ended it. */
const ENDED_CONNECTING: Readonly<Record<string, { outcome: TlsOutcome; failure?: RouteFailure }>> = {
  S: { outcome: 'connect_failed', failure: 'refused' },
  s: { outcome: 'connect_failed', failure: 'connect_timeout' },
  C: { outcome: 'gone' },
};

const isOutcome = (text: string): text is TlsOutcome => (TLS_OUTCOMES as readonly string[]).includes(text);

/** A line of HAProxy's log; undefined where it tells of something else. */
export function readLogLine(line: string): LogLine | undefined {
  const found = LINE.exec(line);
  if (!found) return undefined;
  const [, seconds, ms, durationMs, address, port, name, said, up, down, cause, phase] =
    found as unknown as string[];
  const ending = phase === 'C' ? ENDED_CONNECTING[cause!] : undefined;
  const outcome = isOutcome(said!) ? said : (ending?.outcome ?? (name === '-' ? null : 'relayed'));
  return {
    record: {
      protocol: 'tls',
      startedUnixMs: Number(seconds) * 1000 + Number(ms),
      durationMs: Number(durationMs),
      clientAddress: address!.replace(/^::ffff:(?=[0-9.]+$)/, ''),
      clientPort: Number(port),
      hostname: name === '-' ? null : name!,
      outcome,
      bytesToInstance: outcome === 'relayed' ? Number(up) : 0,
      bytesToClient: Number(down),
    },
    failure: ending?.failure,
  };
}
