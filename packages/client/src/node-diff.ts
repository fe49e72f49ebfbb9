import {
  ANY_TIME,
  AppError,
  compareBounds,
  decodeAnswer,
  END,
  encodeKeys,
  encodeRanges,
  QUESTION_RANGES_MAX,
  RANGES_BODY_BYTES,
  type Range,
  type ShortKey,
  START,
  textOfShortKey,
  verifyShared,
  WANTED_KEYS_MAX,
} from '@skerry/protocol';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { callRaw } from './call.ts';
import { readBytes } from './reads/read-body.ts';

/** Questions to both nodes together. */
const ROUNDS_MAX = 8_000;
/** Messages whose names are asked for: further ones are told by the beginning of their hash. */
const NAMED_MAX = 200;
const LENGTH_BYTES = 4;
/** Messages in one answer; nodes send 4 MiB of them, and one more. */
const MESSAGES_BODY_BYTES = 8 * 1024 * 1024;

export interface NodeDifference {
  /** Messages that the first node has and the second has not; `hash` may be the first 32 digits. */
  readonly onlyFirst: readonly DifferingMessage[];
  readonly onlySecond: readonly DifferingMessage[];
  readonly rounds: number;
}

export interface DifferingMessage {
  readonly hash: string;
  /** Unix seconds. */
  readonly time: number;
}

async function ask(url: string, question: readonly Range[]): Promise<Range[]> {
  const response = await callRaw(url, SYNC_API.compareRanges, { body: encodeRanges(question) });
  const answer = await readBytes(response, RANGES_BODY_BYTES);
  try {
    return decodeAnswer(answer);
  } catch (cause) {
    throw new AppError('UNEXPECTED_ANSWER', `${url} returned no ranges`, { cause });
  }
}

/** Every key of a range, however many there are. */
async function listKeys(url: string, ranges: readonly Range[], spend: () => void): Promise<ShortKey[]> {
  const keys: ShortKey[] = [];
  let open = ranges;
  while (open.length > 0) {
    spend();
    const question = open
      .slice(0, QUESTION_RANGES_MAX)
      .map(({ lower, upper }) => ({ kind: 'list' as const, lower, upper }));
    const answer = await ask(url, question);
    for (const range of answer) if (range.kind === 'keys') keys.push(...range.keys);
    open = [...answer.filter(({ kind }) => kind === 'fingerprint'), ...open.slice(QUESTION_RANGES_MAX)];
  }
  return keys;
}

const NOTHING = new Uint8Array(16);

/** Narrows down where two nodes differ: each answers the other's fingerprints. */
async function findRanges(first: string, second: string, spend: () => void): Promise<Range[]> {
  const found: Range[] = [];
  let open: readonly Range[] = [{ kind: 'fingerprint', lower: START, upper: END, fingerprint: NOTHING }];
  for (let turn = 0; open.length > 0; turn++) {
    spend();
    const answer = await ask(turn % 2 === 0 ? first : second, open.slice(0, QUESTION_RANGES_MAX));
    const rest = open.slice(QUESTION_RANGES_MAX);
    // What does not fit into one question is listed whole.
    found.push(...answer.filter(({ kind }) => kind === 'keys'), ...rest);
    open = answer.filter(({ kind }) => kind === 'fingerprint');
  }
  return found.toSorted((a, b) => compareBounds(a.lower, b.lower));
}

/** The full hash of messages, from the messages themselves. */
async function nameMessages(url: string, keys: readonly ShortKey[]): Promise<DifferingMessage[]> {
  const asked = keys.slice(0, Math.min(NAMED_MAX, WANTED_KEYS_MAX));
  const names = new Map<string, string>();
  if (asked.length > 0) {
    const response = await callRaw(url, SYNC_API.fetchMessages, { body: encodeKeys(asked) });
    const body = await readBytes(response, MESSAGES_BODY_BYTES);
    const view = new DataView(body.buffer, body.byteOffset, body.length);
    for (let at = 0; at + LENGTH_BYTES <= body.length; ) {
      const length = view.getUint32(at);
      const frame = body.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
      at += LENGTH_BYTES + length;
      try {
        const { itemHash } = verifyShared(frame, ANY_TIME);
        names.set(itemHash.slice(0, 32), itemHash);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
      }
    }
  }
  return keys.map(({ time, id }) => ({ time, hash: names.get(id.slice(0, 32)) ?? id.slice(0, 32) }));
}

/** What two core nodes disagree on, with traffic that follows the difference. Throws what the nodes answer with. */
export async function diffNodes(first: string, second: string): Promise<NodeDifference> {
  let rounds = 0;
  const spend = () => {
    if (++rounds > ROUNDS_MAX)
      throw new AppError('UPSTREAM_UNAVAILABLE', 'the nodes differ in too many messages to list');
  };
  const ranges = await findRanges(first, second, spend);
  const [inFirst, inSecond] = await Promise.all(
    [first, second].map(
      async (url) => new Map((await listKeys(url, ranges, spend)).map((key) => [textOfShortKey(key), key])),
    ),
  );
  const only = (some: Map<string, ShortKey>, others: Map<string, ShortKey>) =>
    [...some].flatMap(([text, key]) => (others.has(text) ? [] : [key]));
  const [onlyFirst, onlySecond] = await Promise.all([
    nameMessages(first, only(inFirst!, inSecond!)),
    nameMessages(second, only(inSecond!, inFirst!)),
  ]);
  return { onlyFirst, onlySecond, rounds };
}
