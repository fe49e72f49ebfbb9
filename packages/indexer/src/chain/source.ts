import { sha256Hex } from '@skerry/protocol';
import { readAnswers } from '../rpc/answers.ts';
import { RpcError } from '../rpc/failures.ts';
import { lowerBatch } from '../rpc/limits.ts';
import type { Endpoint, RpcPool } from '../rpc/pool.ts';
import type { Call } from '../rpc/transport.ts';
import { isTelling } from './bloom.ts';
import type { Claims } from './claims.ts';
import { settleSome } from './settle.ts';
import {
  asFields,
  type Header,
  hexNumber,
  type Log,
  parseHeader,
  parseLogs,
  parseTransactions,
  type Transaction,
} from './shape.ts';

/** Addresses in one request for logs; above it all logs of the block are asked for and sifted here. */
const ADDRESSES_MAX = 200;
/** First topics in one request: geth refuses more than a thousand. Above it all logs of the addresses are asked for and sifted here. */
const TOPICS_MAX = 500;

export interface Head {
  readonly head: Header;
  /** null where the endpoint does not know the tag. */
  readonly finalized: number | null;
}

export interface FullBlock {
  readonly header: Header;
  readonly transactions: readonly Transaction[];
}

const headerCall = (block: number | string, full = false): Call => ({
  method: 'eth_getBlockByNumber',
  params: [typeof block === 'number' ? hexNumber(block) : block, full],
});

/** What the endpoint takes for the newest block and for the last final one. Throws RpcError. */
export async function fetchHead(endpoint: Endpoint, withFinalized: boolean): Promise<Head> {
  const calls = withFinalized ? [headerCall('latest'), headerCall('finalized')] : [headerCall('latest')];
  // Not every endpoint knows the tag: its failure is no failure of the look.
  const one = (part: readonly Call[]) =>
    endpoint.exchange(part, (body) => {
      const answers = readAnswers(body, part.length);
      if (part[0] === calls[0] && answers[0] instanceof RpcError) throw answers[0];
      return answers;
    });
  const apart = async () => (await Promise.all(calls.map((call) => one([call])))).flat();
  const answers =
    calls.length > 1 && endpoint.learned.batchCalls < calls.length
      ? await apart()
      : await one(calls).catch((error: unknown) => {
          const refused = error instanceof RpcError && ['malformed', 'refused'].includes(error.failure.kind);
          if (!refused || calls.length === 1) throw error;
          endpoint.learned = lowerBatch(endpoint.learned, 1);
          return apart();
        });
  const [latest, finalized] = answers;
  const head = parseHeader(latest);
  endpoint.head = head.number;
  const isKnown = finalized !== undefined && finalized !== null && !(finalized instanceof RpcError);
  if (isKnown) endpoint.finalized = parseHeader(finalized).number;
  return { head, finalized: isKnown ? endpoint.finalized : null };
}

/** Throws RpcError `stale` where the endpoint does not have one of the blocks. */
export async function fetchHeaders(endpoint: Endpoint, numbers: readonly number[]): Promise<Header[]> {
  const blocks = await endpoint.ask(numbers.map((number) => headerCall(number)));
  return blocks.map((block, index) => checkNumber(parseKnown(block, parseHeader), numbers[index]!));
}

export async function fetchFullBlocks(endpoint: Endpoint, numbers: readonly number[]): Promise<FullBlock[]> {
  const blocks = await endpoint.ask(numbers.map((number) => headerCall(number, true)));
  return blocks.map((block, index) =>
    parseKnown(block, (known) => ({
      header: checkNumber(parseHeader(known), numbers[index]!),
      transactions: parseTransactions(known),
    })),
  );
}

function parseKnown<T>(block: unknown, parse: (block: unknown) => T): T {
  if (block === null) throw new RpcError({ kind: 'stale' });
  return parse(block);
}

function checkNumber(header: Header, number: number): Header {
  if (header.number !== number)
    throw new RpcError({ kind: 'lie', reason: `block ${header.number} was sent for block ${number}` });
  return header;
}

/** The filter of a request for logs, but for its blocks. */
export function logFilter(claims: Pick<Claims, 'addresses' | 'topics'>): Record<string, unknown> {
  const address = claims.addresses.length <= ADDRESSES_MAX ? { address: claims.addresses } : {};
  const isShort = claims.topics !== undefined && claims.topics.length <= TOPICS_MAX;
  return { ...address, ...(isShort ? { topics: [claims.topics] } : {}) };
}

const logsCall = (hash: string, asked: Pick<Claims, 'addresses' | 'topics'>): Call => ({
  method: 'eth_getLogs',
  params: [{ blockHash: hash, ...logFilter(asked) }],
});

export type BlockName = Pick<Header, 'number' | 'hash'>;

/** Whether it is what was asked for that an endpoint does not give at once. */
export const isTooLarge = (error: unknown): boolean =>
  error instanceof RpcError && error.failure.kind === 'range_too_large';

/** Wanted logs of blocks that are named by their hashes (EIP-234), so that they cannot be of another fork. */
export async function fetchLogsOf(
  endpoint: Endpoint,
  blocks: readonly BlockName[],
  claims: Claims,
): Promise<Log[][]> {
  try {
    const answers = await endpoint.ask(blocks.map(({ hash }) => logsCall(hash, claims)));
    return answers.map((answer, index) => logsIn(answer, blocks[index]!, claims));
  } catch (error) {
    if (!isTooLarge(error)) throw error;
  }
  const all: Log[][] = [];
  for (const block of blocks) all.push(inOrder(await fetchApart(endpoint, block, claims, claims.addresses)));
  return all;
}

const inOrder = (logs: Log[]): Log[] => logs.sort((a, b) => a.logIndex - b.logIndex);

/** Some nodes answer null for a block that they do not have. */
function logsIn(answer: unknown, { number, hash }: BlockName, claims: Claims): Log[] {
  const logs = parseKnown(answer, parseLogs);
  for (const log of logs)
    if (log.blockNumber !== number || log.blockHash !== hash)
      throw new RpcError({ kind: 'lie', reason: `a log of another block was sent for block ${number}` });
  return inOrder(logs.filter((log) => claims.read(log) !== undefined));
}

/**
 * The same of one block that has more logs than an endpoint gives at once: of some contracts, of one, and last from the
 * receipts. Anybody can put so many into a block, and what others want of it must not wait for ever.
 */
async function fetchApart(
  endpoint: Endpoint,
  block: BlockName,
  claims: Claims,
  addresses: readonly string[],
): Promise<Log[]> {
  try {
    const [answer] = await endpoint.ask([logsCall(block.hash, { addresses, topics: claims.topics })]);
    return logsIn(answer, block, claims);
  } catch (error) {
    if (!isTooLarge(error)) throw error;
  }
  const [only, ...others] = addresses;
  if (others.length === 0)
    return (await fetchReceiptLogs(endpoint, block.hash, claims)).filter(({ address }) => address === only);
  const middle = addresses.length >> 1;
  return [
    ...(await fetchApart(endpoint, block, claims, addresses.slice(0, middle))),
    ...(await fetchApart(endpoint, block, claims, addresses.slice(middle))),
  ];
}

/** Every log of a block, from the receipts of its transactions. */
async function fetchReceiptLogs(endpoint: Endpoint, hash: string, claims: Claims): Promise<Log[]> {
  const [receipts] = await endpoint.ask([{ method: 'eth_getBlockReceipts', params: [hash] }]);
  if (!Array.isArray(receipts)) throw new RpcError({ kind: 'stale' });
  return receipts
    .flatMap((receipt) => parseLogs(asFields(receipt, 'a receipt').logs))
    .filter((log) => log.blockHash === hash && claims.read(log) !== undefined);
}

/**
 * A second look at a block whose bloom says that something wanted is there while `asked` sent nothing: by another
 * endpoint, and by the receipts where there is none, or where the bloom is hardly wrong. Throws RpcError `lie` where
 * something was held back; a bloom is allowed to be wrong.
 */
export async function checkEmptyBlock(
  pool: RpcPool,
  asked: Endpoint,
  block: Pick<Header, 'number' | 'hash' | 'bloom'>,
  claims: Claims,
): Promise<void> {
  const held = new RpcError({ kind: 'lie', reason: `logs of block ${block.number} were left out` });
  const other = pool.findOther(asked, block.number);
  if (other) {
    const logs = await fetchLogsOf(other, [block], claims).catch((error: unknown) => {
      // What the other one fails at is no fault of the one that was asked.
      if (error instanceof RpcError) return undefined;
      throw error;
    });
    if (logs && logs[0]!.length > 0) throw held;
    if (logs && !isTelling(block.bloom)) return;
  }
  try {
    if ((await fetchReceiptLogs(asked, block.hash, claims)).length > 0) throw held;
  } catch (error) {
    if (error instanceof RpcError && error.failure.kind === 'unsupported') return;
    throw error;
  }
}

/** What an endpoint said, and how others are asked for the same. */
interface Claimed {
  /** Only endpoints that may have this block are asked. */
  readonly number: number;
  readonly said: string;
  /** Undefined where the endpoint cannot say. */
  readonly ask: (endpoint: Endpoint) => Promise<string | undefined>;
  readonly reason: string;
}

/**
 * Compares what an endpoint said with another one, and with all where these two differ. Throws RpcError `lie` where most say something
 * else; where nobody else can say anything, what was said counts.
 */
export async function checkSame(
  pool: RpcPool,
  asked: Endpoint,
  { number, said, ask, reason }: Claimed,
): Promise<void> {
  let other: Endpoint | undefined;
  let otherSaid: string | undefined;
  for (const one of pool.listOthers(asked, number)) {
    other = one;
    otherSaid = await ask(one);
    if (otherSaid !== undefined) break;
  }
  if (!other || otherSaid === undefined || otherSaid === said) return;
  const rest = pool.endpoints.filter((one) => one !== asked && one !== other);
  const votes = await Promise.all(rest.map(ask));
  const against = 1 + votes.filter((one) => one !== undefined && one !== said).length;
  const inFavour = 1 + votes.filter((one) => one === said).length;
  if (against >= inFavour) throw new RpcError({ kind: 'lie', reason });
  other.note({ kind: 'lie', reason }, 0);
}

/** Whether most endpoints that have the block know it under this hash. Throws RpcError `lie` where they do not. */
export const checkAnchor = (pool: RpcPool, asked: Endpoint, { number, hash }: Header): Promise<void> =>
  checkSame(pool, asked, {
    number,
    said: hash,
    ask: (one) => hashAt(one, number),
    reason: `block ${number} is another one at other endpoints`,
  });

/** Without the time, which not every endpoint tells. */
const digestOf = (logs: readonly (readonly Log[])[]): string =>
  sha256Hex(
    JSON.stringify(
      logs.map((block) =>
        block.map(({ address, topics, data, logIndex, transactionHash }) => [
          ...[address, data, logIndex, transactionHash],
          topics,
        ]),
      ),
    ),
  );

/**
 * Whether others have the same logs of blocks as an endpoint sent. No header tells: a bloom that is full allows any log, and one that
 * is made up buys credit. Who does not have the blocks under these hashes is asked in vain. Throws RpcError `lie`.
 *
 * @param logs of each block
 */
export async function checkLogs(
  pool: RpcPool,
  asked: Endpoint,
  { blocks, logs, claims }: { blocks: readonly BlockName[]; logs: readonly Log[][]; claims: Claims },
): Promise<void> {
  const last = blocks.at(-1);
  if (!last) return;
  const said = digestOf(logs);
  const ask = async (one: Endpoint) => {
    const found = await unlessFailed(fetchLogsOf(one, blocks, claims));
    const digest = found && digestOf(found);
    // Some answer with an empty list for a block that they do not have.
    return digest === undefined || digest === said || (await hasAll(one, blocks)) ? digest : undefined;
  };
  const reason = `logs of blocks ${blocks[0]!.number} to ${last.number} are other ones at other endpoints`;
  await checkSame(pool, asked, { number: last.number, said, ask, reason });
}

/** So often what was final, or written, has to be seen replaced (judgeBlock): who could say otherwise may just have failed to. */
export const CONTRADICTIONS = 3;

/**
 * Whether the chain still has a block that was read. That it is `gone` more than half of all endpoints have to say, whoever is
 * silent; it `stands` by the most of those that say anything.
 */
export async function judgeBlock(
  { endpoints }: Pick<RpcPool, 'endpoints'>,
  number: number,
  hash: string,
): Promise<'stands' | 'gone' | 'unknown'> {
  const answers = await Promise.all(endpoints.map((one) => hashAt(one, number)));
  const said = answers.filter((one) => one !== undefined);
  const inFavour = said.filter((one) => one === hash).length;
  if ((said.length - inFavour) * 2 > endpoints.length) return 'gone';
  return inFavour > 0 && inFavour * 2 >= said.length ? 'stands' : 'unknown';
}

/** Blocks that an endpoint is asked for at once, of many: who does not have one of them is asked for no more. */
const COMPARED_AT_ONCE = 32;

async function hasAll(endpoint: Endpoint, blocks: readonly BlockName[]): Promise<boolean> {
  for (let at = 0; at < blocks.length; at += COMPARED_AT_ONCE) {
    const part = blocks.slice(at, at + COMPARED_AT_ONCE);
    const numbers = part.map(({ number }) => number);
    const headers = await unlessFailed(fetchHeaders(endpoint, numbers));
    if (!headers?.every(({ hash }, index) => hash === part[index]!.hash)) return false;
  }
  return true;
}

/** Whether more than half of all endpoints have all of these blocks. It is not waited for those that cannot change that any more. */
export async function haveMost(
  { endpoints }: Pick<RpcPool, 'endpoints'>,
  blocks: readonly BlockName[],
): Promise<boolean> {
  let have = 0;
  const isMost = () => have * 2 > endpoints.length;
  const ask = async (one: Endpoint) => {
    if (await hasAll(one, blocks)) have++;
  };
  await settleSome(endpoints.map(ask), 0, isMost);
  return isMost();
}

/** Undefined where the endpoint cannot say. */
async function hashAt(endpoint: Endpoint, number: number): Promise<string | undefined> {
  const headers = await unlessFailed(fetchHeaders(endpoint, [number]));
  return headers?.[0]?.hash;
}

export async function unlessFailed<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof RpcError) return undefined;
    throw error;
  }
}
