import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** What can go wrong with one HTTP request to an endpoint. */
export type Fault =
  | 'rate_limit'
  | 'unavailable'
  | 'hang'
  | 'malformed'
  | 'range'
  | 'too_large'
  | 'empty_logs'
  | 'missing_log'
  | 'made_up_log'
  | 'duplicate_log'
  | 'shuffled_logs'
  | 'other_parent'
  | 'other_hash'
  | 'stale'
  | 'no_batches';

export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

interface Answer {
  id: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the node answered
  result?: any;
  error?: { code: number; message: string };
}

const STALE_BLOCKS = 3;
/** That of every block, where `other_hash` is played. */
export const OTHER_HASH = `0x${'ee'.repeat(32)}`;

/** A real HTTP server in front of a node that, when told to, does what bad endpoints do. */
export class FaultProxy implements AsyncDisposable {
  readonly url: string;
  /** Decides about each request. */
  choose: (calls: readonly Call[]) => Fault | undefined = () => undefined;
  /** Largest range that `range` and everybody may ask for. */
  rangeBlocks = Number.POSITIVE_INFINITY;
  /** Most logs of one call that everybody is given. */
  logsMax = Number.POSITIVE_INFINITY;
  /** What every answer takes beside the node's own time. */
  delayMs = 0;
  requests = 0;
  /** How often each fault was played. */
  readonly played: Partial<Record<Fault, number>> = {};
  /** Where the node is. */
  target: string;
  readonly #server: Server;

  private constructor(server: Server, target: string) {
    this.#server = server;
    this.target = target;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(target: string): Promise<FaultProxy> {
    const server = createServer((request, response) => {
      const serve = async () => {
        const answer = await proxy.#answer(await text(request));
        if (answer === undefined) return;
        response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
        response.end(answer.text);
      };
      // The node behind may be gone, or the client.
      serve().catch(() => response.destroy());
    });
    const listening = Promise.withResolvers<void>();
    server.listen(0, '127.0.0.1', () => listening.resolve());
    await listening.promise;
    const proxy = new FaultProxy(server, target);
    return proxy;
  }

  async #answer(
    body: string,
  ): Promise<{ status: number; headers?: Record<string, string>; text: string } | undefined> {
    const { target } = this;
    this.requests++;
    if (this.delayMs > 0) await delay(this.delayMs);
    const parsed = JSON.parse(body) as Call | Call[];
    const calls = Array.isArray(parsed) ? parsed : [parsed];
    const fault = this.choose(calls);
    if (fault) this.played[fault] = (this.played[fault] ?? 0) + 1;
    if (fault === 'rate_limit') return { status: 429, headers: { 'retry-after': '0' }, text: '' };
    if (fault === 'unavailable') return { status: 502, text: '<html>bad gateway</html>' };
    // The client's own timeout ends it.
    if (fault === 'hang') return undefined;
    if (fault === 'malformed') return { status: 200, text: '{"jsonrpc":"2.0","id":' };
    if (fault === 'no_batches' && Array.isArray(parsed))
      return {
        status: 200,
        text: JSON.stringify({
          jsonrpc: '2.0',
          id: null,
          error: { code: -32600, message: 'batch requests are refused here' },
        }),
      };
    if (fault === 'too_large') {
      const error = { code: -32005, message: 'response size exceeded' };
      const answers = calls.map(({ id }) => ({ jsonrpc: '2.0', id, error }));
      return { status: 200, text: JSON.stringify(Array.isArray(parsed) ? answers : answers[0]) };
    }
    const tooLarge = calls.find(
      (call) => call.method === 'eth_getLogs' && spanOf(call) > (fault === 'range' ? 1 : this.rangeBlocks),
    );
    if (tooLarge) {
      const error = {
        code: -32005,
        message: `exceed maximum block range: ${fault === 'range' ? 1 : this.rangeBlocks}`,
      };
      const answers = calls.map(({ id }) => ({ jsonrpc: '2.0', id, error }));
      return { status: 200, text: JSON.stringify(Array.isArray(parsed) ? answers : answers[0]) };
    }
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const answers = (await response.json()) as Answer | Answer[];
    for (const answer of [answers].flat()) this.#withhold(calls.find(({ id }) => id === answer.id)!, answer);
    if (fault) {
      const newest = fault === 'stale' ? await headOf(target) : 0;
      for (const answer of Array.isArray(answers) ? answers : [answers])
        spoil(fault, calls.find(({ id }) => id === answer.id)!, answer, newest);
    }
    return { status: 200, text: JSON.stringify(answers) };
  }

  #withhold({ method }: Call, answer: Answer): void {
    if (method !== 'eth_getLogs' || !((answer.result?.length ?? 0) > this.logsMax)) return;
    delete answer.result;
    answer.error = { code: -32005, message: `query returned more than ${this.logsMax} results` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    this.#server.closeAllConnections();
    await closed.promise;
  }
}

function spanOf({ params: [filter] }: Call): number {
  const { fromBlock, toBlock } = filter as { fromBlock?: string; toBlock?: string };
  return fromBlock === undefined ? 1 : Number(toBlock) - Number(fromBlock) + 1;
}

async function headOf(target: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] });
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return Number(((await response.json()) as Answer).result);
}

function spoil(fault: Fault, call: Call, answer: Answer, newest: number): void {
  const { result } = answer;
  if (call.method === 'eth_getLogs' && Array.isArray(result)) {
    if (fault === 'empty_logs') answer.result = [];
    if (fault === 'duplicate_log' && result.length > 0) result.push(result[0]);
    if (fault === 'made_up_log' && result.length > 0)
      result.push({ ...result.at(-1), logIndex: '0xffff', data: `0x${'77'.repeat(32)}` });
    if (fault === 'shuffled_logs') result.reverse();
    if (fault === 'missing_log') {
      // All logs of one block: what a bloom can tell.
      const block = result.at(-1)?.blockNumber;
      answer.result = result.filter(({ blockNumber }: { blockNumber: string }) => blockNumber !== block);
    }
    if (fault === 'stale')
      answer.result = result.filter(
        (log: { blockNumber: string }) => Number(log.blockNumber) <= newest - STALE_BLOCKS,
      );
  }
  if (call.method === 'eth_getBlockByNumber' && result) {
    if (fault === 'other_hash') result.hash = OTHER_HASH;
    if (fault === 'other_parent') result.parentHash = `0x${'ee'.repeat(32)}`;
    if (fault === 'stale' && Number(result.number) > newest - STALE_BLOCKS) answer.result = null;
  }
}
