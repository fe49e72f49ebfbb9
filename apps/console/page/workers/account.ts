import {
  call,
  type ListedMessage,
  listedOf,
  type RefusedMessage,
  saysNothing,
  verifyListed,
} from '@skerry/client';
import {
  AppError,
  balancesAt,
  CREDIT_POST,
  expensesOf,
  fieldsOf,
  type LedgerEntry,
  parseDistribution,
  parseExpense,
  purchasesOf,
  type StampedEntry,
} from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';

/** A balance beside what the signed messages add up to. */
export interface AddedUp {
  readonly publishers: readonly string[];
  /** Messages whose signatures were checked here, and those that are not what a publisher signed. */
  readonly verified: number;
  readonly refused: readonly RefusedMessage[];
  /** Lines that the core node lists, and those that the messages have; some of them newer than the others. */
  readonly listed: number;
  readonly counted: number;
  /** Billionths of a credit. */
  readonly said: string;
  readonly computed: string;
  readonly isSame: boolean;
  /** Whether there are more lines than are read here. */
  readonly isCut: boolean;
}

const LINES_PER_PAGE = 200;
const HASHES_PER_PAGE = 50;
/** Each line may be a message of its own: more would take minutes. */
const LINES_MAX = 2_000;

interface Lines {
  readonly hashes: ReadonlySet<string>;
  readonly listed: number;
  readonly isCut: boolean;
}

/** The messages that the core node's list names. */
async function readLines(coreUrl: string, address: string, time: number): Promise<Lines> {
  const hashes = new Set<string>();
  let listed = 0;
  for (let page = 1; ; page++) {
    const { credit_history: lines, pagination } = await call(coreUrl, CREDITS_API.listCreditHistory, {
      params: { address },
      query: { page, pagination: LINES_PER_PAGE },
    });
    for (const line of lines) {
      if (line.message_timestamp > time) continue;
      listed++;
      hashes.add(line.credit_ref);
    }
    const isLast = lines.length < LINES_PER_PAGE;
    if (isLast || page * LINES_PER_PAGE >= LINES_MAX)
      return { hashes, listed, isCut: !isLast && pagination.total > LINES_MAX };
  }
}

function entriesOf(content: unknown): LedgerEntry[] {
  const { type, content: inner } = fieldsOf(content);
  if (type === CREDIT_POST.distribution) return purchasesOf(parseDistribution(inner));
  if (type === CREDIT_POST.expense) return expensesOf(parseExpense(inner));
  throw new AppError('INVALID_CONTENT', 'the message is neither a purchase nor a charge');
}

/** The entries that a publisher signed. Throws AppError for what none of them signed. */
async function readEntries(
  coreUrl: string,
  row: ListedMessage,
  publishers: ReadonlySet<string>,
): Promise<StampedEntry[]> {
  const { itemHash, sender, time, content } = await verifyListed({ coreUrl }, row);
  if (itemHash !== row.item_hash)
    throw new AppError('HASH_MISMATCH', `the core node returned another message for ${row.item_hash}`);
  if (!publishers.has(sender))
    throw new AppError('INVALID_SIGNATURE', `it was signed by ${sender}, who is no credit publisher`);
  return entriesOf(content).map((entry) => ({ ...entry, time, itemHash }));
}

/** The messages of these hashes, with what proves them: a page for many, not a question for each. */
async function* readListed(
  coreUrl: string,
  hashes: readonly string[],
): AsyncGenerator<{ readonly hash: string; readonly listed: ListedMessage | undefined }> {
  for (let at = 0; at < hashes.length; at += HASHES_PER_PAGE) {
    const asked = hashes.slice(at, at + HASHES_PER_PAGE);
    const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, {
      query: { hashes: asked.join(','), pagination: HASHES_PER_PAGE, bodies: 'shared' },
    });
    for (const hash of asked) yield { hash, listed: messages.find(({ item_hash: one }) => one === hash) };
  }
}

/** A message that the list lacks: asked for by itself, the core node says what became of it. */
async function readAlone(coreUrl: string, hash: string): Promise<ListedMessage> {
  return listedOf(await call(coreUrl, MESSAGES_API.getMessage, { params: { hash } }));
}

/**
 * Adds up what publishers signed of an account, by the rules that core nodes follow. Throws AppError.
 * @param publishers whose messages count, by the reader's choice or the core node's word
 * @param onProgress told how many messages were verified
 */
export async function addUp(
  { coreUrl, address, publishers }: { coreUrl: string; address: string; publishers: readonly string[] },
  onProgress: (verified: number) => void,
): Promise<AddedUp> {
  const said = await call(coreUrl, CREDITS_API.getBalance, { params: { address } });
  const { hashes, listed, isCut } = await readLines(coreUrl, address, said.time);
  const trusted = new Set(publishers.map((one) => one.toLowerCase()));
  const refused: RefusedMessage[] = [];
  const entries: StampedEntry[] = [];
  let verified = 0;
  for await (const { hash, listed: row } of readListed(coreUrl, [...hashes])) {
    try {
      entries.push(...(await readEntries(coreUrl, row ?? (await readAlone(coreUrl, hash)), trusted)));
    } catch (error) {
      if (!(error instanceof AppError) || saysNothing(error)) throw error;
      refused.push({ itemHash: hash, code: error.code, message: error.message });
    }
    onProgress(++verified);
  }
  const own = entries.filter(({ owner }) => owner === said.address);
  const computed = balancesAt(own, said.time).get(said.address) ?? 0n;
  return {
    ...{ publishers, verified, refused, listed, counted: own.length, isCut },
    said: said.credit_balance_nano,
    computed: String(computed),
    isSame: String(computed) === said.credit_balance_nano && refused.length === 0,
  };
}
