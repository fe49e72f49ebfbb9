import { execFile } from 'node:child_process';
import { programEnvironment } from '@skerry/kit';

/** Seconds that the answer may take. */
const TIMEOUT_SECONDS = 2;
const KILL_AFTER_MS = 5_000;
const OUTPUT_BYTES_MAX = 64 * 1024;
const ROUND_TRIP = /time[=<]([0-9]+(?:\.[0-9]+)?) ms/;

/** The round trip in seconds that the system's `ping` told of, or undefined. */
export function parsePing(output: string): number | undefined {
  const text = ROUND_TRIP.exec(output)?.[1];
  return text === undefined ? undefined : Math.round(Number(text) * 1_000) / 1_000_000;
}

/**
 * One ICMP echo by the system's `ping`, which may send them whoever runs the monitor. Undefined without an answer, and
 * where there is no such program.
 * @param address an IPv6 address
 */
export function ping(address: string, signal: AbortSignal): Promise<number | undefined> {
  return new Promise((resolve) => {
    execFile(
      'ping',
      ['-n', '-6', '-c', '1', '-W', String(TIMEOUT_SECONDS), address],
      {
        timeout: KILL_AFTER_MS,
        maxBuffer: OUTPUT_BYTES_MAX,
        signal,
        env: programEnvironment(),
      },
      (error, stdout) => resolve(error ? undefined : parsePing(stdout)),
    );
  });
}
