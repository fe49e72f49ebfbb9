import {
  AppError,
  canonicalJson,
  parseScoringSettings,
  parseVersionTable,
  SCORES_POST_TYPE,
  SCORING_CHANNEL,
  sha256Hex,
} from '@skerry/protocol';
import type { CoreClient } from '../core-client.ts';
import { buildNetworkMessage, buildStoredMessage } from '../network-message.ts';
import { requestJson } from '../request.ts';
import { type ComputedScores, computeScoresOf, type ScoresContent, type ScoringTerms } from './compute.ts';

/** A table or a list that scores were computed from. */
const FILE_BYTES_MAX = 16 * 1024 ** 2;

const isTooLong = (error: unknown) => error instanceof AppError && error.code === 'INVALID_CONTENT';

/** Stores the inputs as files, then publishes the scores. Resolves with the item hash. */
export async function publishScores(core: CoreClient, { content, files }: ComputedScores): Promise<string> {
  for (const [hash, text] of files) await core.storeFile(new Blob([text]), 'scoring-input', hash);
  const draft = { type: 'POST', channel: SCORING_CHANNEL, content: { type: SCORES_POST_TYPE, content } };
  const send = (body: string) => requestJson(`${core.url}/api/v0/messages`, { method: 'POST', body });
  let inline: ReturnType<typeof buildNetworkMessage> | undefined;
  try {
    inline = buildNetworkMessage(draft, core.signer);
  } catch (error) {
    if (!isTooLong(error)) throw error;
  }
  if (inline) {
    await send(inline.body);
    return inline.itemHash;
  }
  const stored = buildStoredMessage(draft, core.signer);
  await core.storeFile(new Blob([stored.content]), 'scores.json', stored.itemHash);
  await send(stored.body);
  return stored.itemHash;
}

async function readInput(core: CoreClient, hash: string): Promise<string> {
  const response = await core.getFile(hash);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > FILE_BYTES_MAX) throw new AppError('FILE_TOO_LARGE', `the input ${hash} is too large`);
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
  if (sha256Hex(bytes) !== hash) throw new AppError('FILE_CORRUPT', `the input ${hash} has other bytes`);
  return new TextDecoder().decode(bytes);
}

/** What published scores say that they were computed from. Throws INVALID_CONTENT for what has not their form. */
export async function readTerms(core: CoreClient, content: ScoresContent): Promise<ScoringTerms> {
  const { period, inputs, settings, tags } = content ?? {};
  const [from, to] = [Date.parse(period?.from_date) / 1000, Date.parse(period?.to_date) / 1000];
  if (
    !(from < to) ||
    !Array.isArray(inputs?.publishers) ||
    !inputs.publishers.every((one) => typeof one === 'string')
  )
    throw new AppError('INVALID_CONTENT', 'the message does not say what its scores were computed from');
  const registrations =
    inputs.registrations === null
      ? undefined
      : (JSON.parse(await readInput(core, inputs.registrations)) as Record<string, number>);
  return {
    period: { from, to },
    settings: parseScoringSettings(settings),
    publishers: inputs.publishers,
    versions: parseVersionTable(JSON.parse(await readInput(core, inputs.versions))),
    registrations,
    tags: Array.isArray(tags) ? tags : [],
  };
}

export interface Verification {
  readonly isSame: boolean;
  /** As published, and as computed here. */
  readonly published: string;
  readonly computed: string;
  readonly count: number;
  /** Metrics messages that the publisher had and this core node has not, and the reverse. */
  readonly missing: readonly string[];
  readonly extra: readonly string[];
  /** Nodes whose scores differ. */
  readonly different: readonly string[];
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/** Computes published scores again, from what another core node has, and compares. */
export async function verifyScores(core: CoreClient, itemHash: string): Promise<Verification> {
  const message = await core.getMessage(itemHash);
  const post = message.content as { type?: unknown; content?: ScoresContent } | null;
  if (message.type !== 'POST' || post?.type !== SCORES_POST_TYPE)
    throw new AppError('INVALID_CONTENT', `${itemHash} does not publish scores`);
  const content = post.content!;
  const terms = await readTerms(core, content);
  const { content: again, files } = await computeScoresOf({ coreUrl: core.url }, terms);
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
    isSame: published === again.scores_hash && published === content.scores_hash,
    published,
    computed: again.scores_hash,
    count: again.inputs.metrics.count,
    missing: [...theirs].filter((hash) => !ours.has(hash)),
    extra: [...ours].filter((hash) => !theirs.has(hash)),
    different: [...new Set([...before.keys(), ...now.keys()])].filter((id) => before.get(id) !== now.get(id)),
  };
}
