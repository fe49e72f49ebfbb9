import {
  ANY_TIME,
  AppError,
  compareBounds,
  decodeAnswer,
  END,
  encodeKeys,
  encodeRanges,
  fieldsOf,
  hexToBytes,
  isCid,
  isItemHash64,
  QUESTION_RANGES_MAX,
  RANGES_BODY_BYTES,
  type Range,
  type ShortKey,
  START,
  SYNC_ID_BYTES,
  shortHashOf,
  syncHashOf,
  textOfShortKey,
  verifyShared,
  WANTED_KEYS_MAX,
} from '@skerry/protocol';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { call, callRaw } from './call.ts';
import { readBytes } from './reads/read-body.ts';

/** Questions to both nodes together. */
const ROUNDS_MAX = 8_000;
/** Keys of one node where the two differ: one that lies has any number. */
const KEYS_MAX = 2_000_000;
/** Messages whose names are asked for: further ones are told by the beginning of their hash. */
const NAMED_MAX = 200;
const LENGTH_BYTES = 4;
/** Messages in one answer; nodes send 4 MiB of them, and one more. */
const MESSAGES_BODY_BYTES = 8 * 1024 * 1024;

export interface NodeDifference {
  /** Messages that the first node has and the second has not; `hash` may be the first 32 digits. */
  readonly onlyFirst: readonly DifferingMessage[];
  readonly onlySecond: readonly DifferingMessage[];
  /** Null: one of the nodes is of an earlier release and does not compare them. */
  readonly forgotten: ForgottenDifference | null;
  readonly rounds: number;
}

/** Of the messages that are forgotten: by their keys among all messages these do not differ. */
export interface ForgottenDifference {
  readonly onlyFirst: readonly DifferingMessage[];
  readonly onlySecond: readonly DifferingMessage[];
  /** Forgotten on both, and told otherwise: whose it is, on whose behalf it spoke, its type, or what it named. */
  readonly otherwise: readonly DifferingMessage[];
}

export interface DifferingMessage {
  readonly hash: string;
  /** Unix seconds. */
  readonly time: number;
}

type Asked = typeof SYNC_API.compareRanges | typeof SYNC_API.compareForgotten;
const ALL = SYNC_API.compareRanges;

async function ask(url: string, asked: Asked, question: readonly Range[]): Promise<Range[]> {
  const response = await callRaw(url, asked, { body: encodeRanges(question) });
  const answer = await readBytes(response, RANGES_BODY_BYTES);
  try {
    return decodeAnswer(answer);
  } catch (cause) {
    throw new AppError('UNEXPECTED_ANSWER', `${url} returned no ranges`, { cause });
  }
}

/** Every key of a range, however many there are. */
async function listKeys(
  url: string,
  asked: Asked,
  ranges: readonly Range[],
  spend: () => void,
): Promise<ShortKey[]> {
  const keys: ShortKey[] = [];
  let open = ranges;
  while (open.length > 0) {
    spend();
    const question = open
      .slice(0, QUESTION_RANGES_MAX)
      .map(({ lower, upper }) => ({ kind: 'list' as const, lower, upper }));
    const answer = await ask(url, asked, question);
    for (const range of answer) if (range.kind === 'keys') keys.push(...range.keys);
    if (keys.length > KEYS_MAX) throw tooMany();
    open = [...answer.filter(({ kind }) => kind === 'fingerprint'), ...open.slice(QUESTION_RANGES_MAX)];
  }
  return keys;
}

const tooMany = () => new AppError('UPSTREAM_UNAVAILABLE', 'the nodes differ in too many messages to list');

type Pair<T> = readonly [T, T];

const NOTHING = new Uint8Array(16);

/** Narrows down where two nodes differ: each answers the other's fingerprints. */
async function findRanges([first, second]: Pair<string>, asked: Asked, spend: () => void): Promise<Range[]> {
  const found: Range[] = [];
  let open: readonly Range[] = [{ kind: 'fingerprint', lower: START, upper: END, fingerprint: NOTHING }];
  for (let turn = 0; open.length > 0; turn++) {
    spend();
    const answer = await ask(turn % 2 === 0 ? first : second, asked, open.slice(0, QUESTION_RANGES_MAX));
    const rest = open.slice(QUESTION_RANGES_MAX);
    // What does not fit into one question is listed whole.
    found.push(...answer.filter(({ kind }) => kind === 'keys'), ...rest);
    open = answer.filter(({ kind }) => kind === 'fingerprint');
  }
  return found.toSorted((a, b) => compareBounds(a.lower, b.lower));
}

/** The item hash of a message as nodes pass it on, or of what is left of one; undefined: it is neither. */
function hashOfFrame(frame: Uint8Array): string | undefined {
  try {
    return verifyShared(frame, ANY_TIME).itemHash;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
  try {
    const { item_hash: hash } = fieldsOf(fieldsOf(JSON.parse(new TextDecoder().decode(frame))).forgotten);
    // What is neither would be written to a terminal as a stranger wishes.
    return typeof hash === 'string' && (isItemHash64(hash) || isCid(hash)) ? hash : undefined;
  } catch {
    return undefined;
  }
}

/** The full hash of messages, from the messages themselves. @param keys of the first of them, among all messages */
async function findNames(url: string, keys: readonly ShortKey[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  if (keys.length === 0) return names;
  const response = await callRaw(url, SYNC_API.fetchMessages, { body: encodeKeys(keys) });
  const body = await readBytes(response, MESSAGES_BODY_BYTES);
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  for (let at = 0; at + LENGTH_BYTES <= body.length; ) {
    const length = view.getUint32(at);
    const hash = hashOfFrame(body.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length));
    at += LENGTH_BYTES + length;
    if (hash !== undefined) names.set(shortHashOf(syncHashOf(hash)), hash);
  }
  return names;
}

/** The ranges in which messages of these keys are among all others, whatever the rest of their keys. */
const rangesAround = (keys: readonly ShortKey[]): Range[] =>
  keys
    .map(({ time, id }) => {
      const prefix = hexToBytes(shortHashOf(id))!;
      const next = new Uint8Array(SYNC_ID_BYTES).fill(255);
      next.set(prefix);
      return { kind: 'list' as const, lower: { time, prefix }, upper: { time, prefix: next } };
    })
    .toSorted((a, b) => compareBounds(a.lower, b.lower));

async function nameMessages(
  url: string,
  asked: Asked,
  keys: readonly ShortKey[],
  spend: () => void,
): Promise<DifferingMessage[]> {
  const some = keys.slice(0, Math.min(NAMED_MAX, WANTED_KEYS_MAX));
  // By their keys among those that are forgotten nobody is asked for messages.
  const named = asked === ALL ? some : await listKeys(url, ALL, rangesAround(some), spend);
  const names = await findNames(url, named.slice(0, WANTED_KEYS_MAX));
  return keys.map(({ time, id }) => ({ time, hash: names.get(shortHashOf(id)) ?? shortHashOf(id) }));
}

interface Only {
  readonly onlyFirst: readonly ShortKey[];
  readonly onlySecond: readonly ShortKey[];
}

/** The keys of one of the sets that only one of the nodes has. */
async function diffSets(urls: Pair<string>, asked: Asked, spend: () => void): Promise<Only> {
  const ranges = await findRanges(urls, asked, spend);
  const listIn = async (url: string) =>
    new Map((await listKeys(url, asked, ranges, spend)).map((key) => [textOfShortKey(key), key]));
  const [inFirst, inSecond] = await Promise.all([listIn(urls[0]), listIn(urls[1])]);
  const only = (some: Map<string, ShortKey>, others: Map<string, ShortKey>) =>
    [...some].flatMap(([text, key]) => (others.has(text) ? [] : [key]));
  return { onlyFirst: only(inFirst, inSecond), onlySecond: only(inSecond, inFirst) };
}

async function diffForgotten(urls: Pair<string>, spend: () => void): Promise<ForgottenDifference | null> {
  const statuses = await Promise.all(urls.map((url) => call(url, SYNC_API.getSyncStatus, {})));
  if (statuses.some(({ forgotten }) => forgotten === undefined)) return null;
  const { onlyFirst, onlySecond } = await diffSets(urls, SYNC_API.compareForgotten, spend);
  const hashesOf = (keys: readonly ShortKey[]) => new Set(keys.map(({ id }) => shortHashOf(id)));
  const [first, second] = [hashesOf(onlyFirst), hashesOf(onlySecond)];
  const isIn = (hashes: ReadonlySet<string>) => (key: ShortKey) => hashes.has(shortHashOf(key.id));
  const without = (keys: readonly ShortKey[], hashes: ReadonlySet<string>) =>
    keys.filter((key) => !isIn(hashes)(key));
  const nameAt = (url: string, keys: readonly ShortKey[]) =>
    nameMessages(url, SYNC_API.compareForgotten, keys, spend);
  const [inFirst, inSecond, otherwise] = await Promise.all([
    nameAt(urls[0], without(onlyFirst, second)),
    nameAt(urls[1], without(onlySecond, first)),
    nameAt(urls[0], onlyFirst.filter(isIn(second))),
  ]);
  return { onlyFirst: inFirst, onlySecond: inSecond, otherwise };
}

/** What two core nodes disagree on, with traffic that follows the difference. Throws what the nodes answer with. */
export async function diffNodes(first: string, second: string): Promise<NodeDifference> {
  let rounds = 0;
  const spend = () => {
    if (++rounds > ROUNDS_MAX) throw tooMany();
  };
  const urls = [first, second] as const;
  const keys = await diffSets(urls, ALL, spend);
  const [onlyFirst, onlySecond] = await Promise.all([
    nameMessages(first, ALL, keys.onlyFirst, spend),
    nameMessages(second, ALL, keys.onlySecond, spend),
  ]);
  return { onlyFirst, onlySecond, forgotten: await diffForgotten(urls, spend), rounds };
}
