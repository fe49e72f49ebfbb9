import http from 'node:http';
import https from 'node:https';
import { createLookup, findAddresses, type MayReach, refuseUpgrade } from '@skerry/kit';

export interface CheckResult {
  readonly isOnline: boolean;
  /** From the request to the last byte of the answer, whole microseconds; null where there was none. */
  readonly latencyUs: number | null;
  readonly statusCode: number | null;
  /** A sentence; null where all is well. */
  readonly issue: string | null;
}

export interface CheckOptions {
  readonly mayReach: MayReach;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An answer that is larger is a failure: what says whether a service is well is small. */
const BODY_BYTES_MAX = 1024 ** 2;
const HEADER_BYTES_MAX = 16 * 1024;
const EXPECTED_STATUS = 200;

const failed = (
  issue: string,
  statusCode: number | null = null,
  latencyUs: number | null = null,
): CheckResult => ({
  isOnline: false,
  latencyUs,
  statusCode,
  issue,
});

function judge(statusCode: number, latencyUs: number): CheckResult {
  return statusCode === EXPECTED_STATUS
    ? { isOnline: true, latencyUs, statusCode, issue: null }
    : failed(`answered ${statusCode}`, statusCode, latencyUs);
}

function request(url: URL, { mayReach, timeoutMs, signal }: CheckOptions): Promise<CheckResult> {
  const timeout = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve) => {
    const begunMs = performance.now();
    const { get } = url.protocol === 'https:' ? https : http;
    const sent = get(url, {
      agent: false,
      lookup: createLookup(0, mayReach),
      signal: AbortSignal.any([signal, timeout]),
      maxHeaderSize: HEADER_BYTES_MAX,
      headers: { accept: '*/*' },
    });
    const why = (error: NodeJS.ErrnoException) =>
      timeout.aborted
        ? `no answer within ${timeoutMs} ms`
        : `does not answer (${error.code ?? error.message})`;
    sent.on('error', (error) => resolve(failed(why(error))));
    refuseUpgrade(sent);
    sent.on('response', (response) => {
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > BODY_BYTES_MAX) sent.destroy(new Error('the answer is too large'));
      });
      response.on('error', (error) => resolve(failed(why(error))));
      response.on('end', () =>
        resolve(judge(response.statusCode ?? 0, Math.round((performance.now() - begunMs) * 1000))),
      );
    });
  });
}

/** One GET. A redirect is an answer like any other, so nobody is sent elsewhere. Never rejects. */
export async function checkService(address: string, options: CheckOptions): Promise<CheckResult> {
  const url = new URL(address);
  // An address in the place of a name is connected to without being looked up.
  const addresses = await findAddresses(url.hostname, 0, options.mayReach);
  if (addresses.length === 0) return failed('has no allowed address');
  return request(url, options);
}
