import {
  AppError,
  canonicalJson,
  createParser,
  fieldsOf,
  parseScoringSettings,
  parseVersionTable,
  SCORES_POST_TYPE,
  SCORING_CHANNEL,
  sha256Hex,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { SentQuery } from '@skerry/protocol/api/operation';
import { Type } from '@skerry/protocol/type';
import { callRows, parseJson } from '../call.ts';
import type { CoreClient } from '../core-client.ts';
import { readBytes } from '../reads/read-body.ts';
import { type ListedMessage, type SignedMessageSource, verifyListed } from '../signed-message.ts';
import { computeScoresOf, type ScoresContent, type ScoringTerms } from './compute.ts';
import type { RefusedMessage } from './published.ts';

/** A table or a list that scores were computed from. */
const FILE_BYTES_MAX = 16 * 1024 ** 2;

/** Scores as their publisher signed them. */
export interface PublishedScores {
  readonly itemHash: string;
  /** Whose key signed them. */
  readonly publisher: string;
  /** Unix seconds, of the message. */
  readonly time: number;
  readonly content: ScoresContent;
}

const Score = Type.Object({
  node_id: Type.String(),
  total_score: Type.Number(),
  decentralization: Type.Number(),
  codes: Type.Optional(Type.Array(Type.Number())),
  measurements: Type.Object({ record_count: Type.Number() }),
});
/** Anybody may publish scores; what they were computed from is looked at where that is done again (`readTerms`). */
const Scores = Type.Object({ scores: Type.Object({ ccn: Type.Array(Score), crn: Type.Array(Score) }) });
const parseScores = createParser(Type.Unsafe<ScoresContent>(Scores), 'content.content');

/** @param asked the hash that the message must have */
async function readScoresRow(
  source: SignedMessageSource,
  row: ListedMessage,
  asked?: string,
): Promise<PublishedScores> {
  const { itemHash, type, sender, time, content } = await verifyListed(source, row);
  if (asked !== undefined && itemHash !== asked)
    throw new AppError('HASH_MISMATCH', `the core node returned another message for ${asked}`);
  const post = fieldsOf(content);
  if (type !== 'POST' || post.type !== SCORES_POST_TYPE)
    throw new AppError('INVALID_CONTENT', `${itemHash} is not a scores message`);
  return { itemHash, publisher: sender, time, content: parseScores(post.content) };
}

/** The first message of a list. Throws UNEXPECTED_ANSWER where the node gives something else in its place. */
async function findListed(
  { coreUrl, signal }: SignedMessageSource,
  query: SentQuery<typeof NETWORK_LISTS_API.listNetworkMessages>,
): Promise<ListedMessage | undefined> {
  const list = NETWORK_LISTS_API.listNetworkMessages;
  const { messages, unreadable } = await callRows(coreUrl, list, 'messages', { query }, { signal });
  if (messages.length === 0 && unreadable[0]) throw unreadable[0].error;
  return messages[0];
}

/** Scores by the hash of their message. Throws MESSAGE_NOT_FOUND, INVALID_SIGNATURE, HASH_MISMATCH, INVALID_CONTENT. */
export async function readPublishedScores(
  source: SignedMessageSource,
  itemHash: string,
): Promise<PublishedScores> {
  const row = await findListed(source, { hashes: itemHash });
  if (!row) throw new AppError('MESSAGE_NOT_FOUND', `the core node has no message ${itemHash}`);
  return readScoresRow(source, row, itemHash);
}

/**
 * The newest scores that the core node tells of: it can keep newer ones back, and cannot make any up.
 * @param publishers whose; undefined: anybody's
 */
export async function readLatestScores(
  source: SignedMessageSource,
  publishers?: readonly string[],
): Promise<PublishedScores | undefined> {
  const row = await findListed(source, {
    msgTypes: 'POST',
    contentTypes: SCORES_POST_TYPE,
    channels: SCORING_CHANNEL,
    pagination: 1,
    cursor: '',
    ...(publishers === undefined ? {} : { addresses: publishers.join(',') }),
  });
  if (!row) return undefined;
  const scores = await readScoresRow(source, row);
  if (publishers === undefined || publishers.includes(scores.publisher)) return scores;
  throw new AppError('INVALID_SIGNATURE', `the core node returned scores that ${scores.publisher} signed`);
}

async function readInput(core: CoreClient, hash: string): Promise<string> {
  const response = await core.getFile(hash);
  const bytes = await readBytes(response, FILE_BYTES_MAX);
  if (sha256Hex(bytes) !== hash)
    throw new AppError('FILE_CORRUPT', `the bytes of the input ${hash} do not match it`);
  return new TextDecoder().decode(bytes);
}

const parseTerms = createParser(
  Type.Object({
    period: Type.Object({ from_date: Type.String(), to_date: Type.String() }),
    inputs: Type.Object({
      publishers: Type.Array(Type.String()),
      metrics: Type.Object({ count: Type.Integer(), hash: Type.String() }),
      versions: Type.String(),
      registrations: Type.Union([Type.String(), Type.Null()]),
    }),
    settings: Type.Unknown(),
    tags: Type.Optional(Type.Array(Type.String())),
  }),
  'content.content',
);
const parseRegistrations = createParser(Type.Record(Type.String(), Type.Number()), 'the registrations');

const readJsonInput = async (core: CoreClient, hash: string) =>
  parseJson(await readInput(core, hash), `the input ${hash}`);

/** What published scores say that they were computed from. Throws INVALID_CONTENT for what has not their form. */
export async function readTerms(core: CoreClient, content: ScoresContent): Promise<ScoringTerms> {
  const { period, inputs, settings, tags = [] } = parseTerms(content);
  const [from, to] = [Date.parse(period.from_date) / 1000, Date.parse(period.to_date) / 1000];
  if (!(from < to)) throw new AppError('INVALID_CONTENT', 'the period of the scores has no length');
  return {
    period: { from, to },
    settings: parseScoringSettings(settings),
    publishers: inputs.publishers,
    versions: parseVersionTable(await readJsonInput(core, inputs.versions)),
    registrations:
      inputs.registrations === null
        ? undefined
        : parseRegistrations(await readJsonInput(core, inputs.registrations)),
    tags,
  };
}

export interface Verification {
  /** Whether the scores are the same, and rest on nothing but signed messages. */
  readonly isSame: boolean;
  /** Who signed the scores, and whose measurements they were computed from. */
  readonly publisher: string;
  readonly publishers: readonly string[];
  /** As published, and as computed here. */
  readonly published: string;
  readonly computed: string;
  readonly count: number;
  /** Metrics messages that the publisher had and this core node has not, and the reverse. */
  readonly missing: readonly string[];
  readonly extra: readonly string[];
  /** Nodes whose scores differ. */
  readonly different: readonly string[];
  /** What the core node gave as measurements of the publishers and they did not sign. None of it counts. */
  readonly refused: readonly RefusedMessage[];
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/**
 * Computes published scores again, from what a core node has, and compares. The node is believed for nothing: the scores
 * and every measurement have to be what their publishers signed, and the tables what the scores name by hash.
 */
export async function verifyScores(
  core: CoreClient,
  itemHash: string,
  onProgress?: (verified: number) => void,
): Promise<Verification> {
  const { content, publisher } = await readPublishedScores({ coreUrl: core.url }, itemHash);
  const terms = await readTerms(core, content);
  const refused: RefusedMessage[] = [];
  const source = {
    coreUrl: core.url,
    onProgress,
    onRefused: (one: RefusedMessage) => void refused.push(one),
  };
  const { content: again, files } = await computeScoresOf(source, terms);
  const published = sha256Hex(canonicalJson(content.scores));
  const theirs = new Set(
    again.inputs.metrics.hash === content.inputs.metrics.hash
      ? []
      : linesOf(await readInput(core, content.inputs.metrics.hash)),
  );
  const ours = new Set(theirs.size === 0 ? [] : linesOf(files.get(again.inputs.metrics.hash)!));
  const rows = (scores: ScoresContent['scores']) =>
    new Map([...scores.ccn, ...scores.crn].map((score) => [score.node_id, canonicalJson(score)]));
  const [before, now] = [rows(content.scores), rows(again.scores)];
  return {
    isSame: published === again.scores_hash && published === content.scores_hash && refused.length === 0,
    publisher,
    publishers: terms.publishers,
    published,
    computed: again.scores_hash,
    count: again.inputs.metrics.count,
    missing: [...theirs].filter((hash) => !ours.has(hash)),
    extra: [...ours].filter((hash) => !theirs.has(hash)),
    different: [...new Set([...before.keys(), ...now.keys()])].filter((id) => before.get(id) !== now.get(id)),
    refused,
  };
}
