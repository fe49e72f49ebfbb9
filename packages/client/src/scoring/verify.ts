import {
  AppError,
  canonicalJson,
  createParser,
  fieldsOf,
  type OddScore,
  parseScoringSettings,
  parseVersionTable,
  type ReadScores,
  readScoreRows,
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

/** Scores that their publisher signed. */
export interface PublishedScores {
  readonly itemHash: string;
  /** Whose key signed them. */
  readonly publisher: string;
  /** Unix seconds, of the message. */
  readonly time: number;
  /**
   * With the rows that count. Anybody may publish scores: what they were computed from is looked at where that is done again
   * (`readTerms`).
   */
  readonly content: Omit<ScoresContent, 'scores'> & { readonly scores: Pick<ReadScores, 'ccn' | 'crn'> };
  /** The rows that do not count. */
  readonly odd: readonly OddScore[];
  /** `content.content` as it was signed. */
  readonly signed: unknown;
}

/** Throws INVALID_CONTENT where there is no list of scores. */
function parseScores(signed: unknown, itemHash: string): Pick<PublishedScores, 'content' | 'odd' | 'signed'> {
  const { scores } = fieldsOf(signed);
  const { ccn, crn } = fieldsOf(scores);
  if (!Array.isArray(ccn) && !Array.isArray(crn))
    throw new AppError(
      'INVALID_CONTENT',
      `content.content.scores of ${itemHash} has neither a list ccn nor a list crn`,
    );
  const { odd, ...rows } = readScoreRows(scores);
  return { content: { ...(signed as ScoresContent), scores: rows }, odd, signed };
}

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
  return { itemHash, publisher: sender, time, ...parseScores(post.content, itemHash) };
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
 * The scores that a publisher published last, as far as the core node tells: it can keep newer ones back, and cannot make any up.
 * Throws as `readPublishedScores` does.
 */
export async function readLatestScores(
  source: SignedMessageSource,
  publisher: string,
): Promise<PublishedScores | undefined> {
  const row = await findListed(source, {
    msgTypes: 'POST',
    contentTypes: SCORES_POST_TYPE,
    channels: SCORING_CHANNEL,
    pagination: 1,
    cursor: '',
    addresses: publisher,
  });
  if (!row) return undefined;
  const scores = await readScoresRow(source, row);
  if (scores.publisher === publisher) return scores;
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
export async function readTerms(core: CoreClient, signed: unknown): Promise<ScoringTerms> {
  const { period, inputs, settings, tags = [] } = parseTerms(signed);
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
  /** Published rows that no scoring has, since they have not the form of a score. */
  readonly odd: readonly OddScore[];
  /** What the core node gave as measurements of the publishers and they did not sign. None of it counts. */
  readonly refused: readonly RefusedMessage[];
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/** Rows of scores as they were signed, whatever they say beside, by the id of the node. */
export function signedRows(scores: unknown): ReadonlyMap<string, unknown> {
  const { ccn, crn } = fieldsOf(scores);
  const rows = [ccn, crn].flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  return new Map(
    rows.flatMap((row): [string, unknown][] => {
      const { node_id: id } = fieldsOf(row);
      return typeof id === 'string' ? [[id, row]] : [];
    }),
  );
}

/** Ids of nodes of which two lists of scores have other rows. */
function listDifferent(theirs: unknown, ours: unknown): string[] {
  const [before, now] = [signedRows(theirs), signedRows(ours)];
  const textOf = (row: unknown) => (row === undefined ? undefined : canonicalJson(row));
  return [...new Set([...before.keys(), ...now.keys()])].filter(
    (id) => textOf(before.get(id)) !== textOf(now.get(id)),
  );
}

/**
 * Computes published scores again, from what a core node has, and compares. The node is believed for nothing: the scores
 * and every measurement have to be what their publishers signed, and the tables what the scores name by hash.
 */
export async function verifyScores(
  core: CoreClient,
  itemHash: string,
  onProgress?: (verified: number) => void,
): Promise<Verification> {
  const { content, publisher, odd, signed } = await readPublishedScores({ coreUrl: core.url }, itemHash);
  const terms = await readTerms(core, signed);
  const refused: RefusedMessage[] = [];
  const source = {
    coreUrl: core.url,
    onProgress,
    onRefused: (one: RefusedMessage) => void refused.push(one),
  };
  const { content: again, files } = await computeScoresOf(source, terms);
  const { scores } = fieldsOf(signed);
  const published = sha256Hex(canonicalJson(scores));
  const theirs = new Set(
    again.inputs.metrics.hash === content.inputs.metrics.hash
      ? []
      : linesOf(await readInput(core, content.inputs.metrics.hash)),
  );
  const ours = new Set(theirs.size === 0 ? [] : linesOf(files.get(again.inputs.metrics.hash)!));
  return {
    isSame: published === again.scores_hash && published === content.scores_hash && refused.length === 0,
    publisher,
    publishers: terms.publishers,
    published,
    computed: again.scores_hash,
    count: again.inputs.metrics.count,
    missing: [...theirs].filter((hash) => !ours.has(hash)),
    extra: [...ours].filter((hash) => !theirs.has(hash)),
    different: listDifferent(scores, again.scores),
    odd,
    refused,
  };
}
