import {
  AppError,
  type ErrorCode,
  METRICS_POST_TYPES,
  type MetricsMessage,
  type Period,
  parseMetricsReport,
  parseVersionTable,
  SCORING_CHANNEL,
  VERSIONS_KEY,
  type VersionTable,
} from '@skerry/protocol';
import { requestJson } from '../request.ts';
import { type ListedMessage, type SignedMessageSource, verifyListed } from '../signed-message.ts';

/** A message that the core node gave, and that its publisher did not sign as it was given. */
export interface RefusedMessage {
  readonly itemHash: string;
  readonly code: ErrorCode;
  readonly message: string;
}

export interface ScoringSource extends SignedMessageSource {
  /** Told of every message that does not count because it is not what its publisher signed. */
  readonly onRefused?: ((refused: RefusedMessage) => void) | undefined;
  /** Told how many were verified so far. */
  readonly onProgress?: ((verified: number) => void) | undefined;
}

/** Messages may be megabytes; a page of them is held at once. */
const MESSAGES_PER_PAGE = 10;
const TIMEOUT_MS = 120_000;
const NODE_LIST_KEY = 'corechannel';

type MetricsRow = ListedMessage & {
  readonly channel: string | null;
  readonly content: { readonly address?: unknown; readonly type?: unknown } | null;
};

interface MessagesPage {
  readonly messages: readonly MetricsRow[];
  readonly next_cursor: string | null;
}

const TYPES: readonly unknown[] = METRICS_POST_TYPES;

/** What the publisher signed, with its own key: what others sign on its behalf does not count. */
async function verifyMetrics(
  source: ScoringSource,
  row: MetricsRow,
  trusted: ReadonlySet<string>,
): Promise<MetricsMessage> {
  const { itemHash, sender, type, time, content } = await verifyListed(source, row);
  if (!trusted.has(sender))
    throw new AppError('INVALID_SIGNATURE', `${itemHash} was signed by ${sender}, who is not a publisher`);
  const { address, type: contentType } = content as Record<string, unknown>;
  if (
    itemHash !== row.item_hash ||
    type !== 'POST' ||
    !TYPES.includes(contentType) ||
    String(address ?? sender).toLowerCase() !== sender.toLowerCase()
  )
    throw new AppError('INVALID_CONTENT', `${itemHash} is not a measurement by ${sender}`);
  return { itemHash, time, report: parseMetricsReport((content as { content?: unknown }).content) };
}

const refusalOf = (itemHash: string, { code, message }: AppError): RefusedMessage => ({
  itemHash,
  code,
  message,
});

/**
 * The metrics messages of these publishers, newest first, a page at a time. Every signature and hash is verified here;
 * what the core node gives without one does not count, and `onRefused` is told.
 */
export async function* readMetricsMessages(
  source: ScoringSource,
  publishers: readonly string[],
  period: Period,
): AsyncGenerator<MetricsMessage> {
  const { coreUrl, signal, onRefused, onProgress } = source;
  const trusted = new Set(publishers);
  let verified = 0;
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({
      msgTypes: 'POST',
      contentTypes: METRICS_POST_TYPES.join(','),
      channels: SCORING_CHANNEL,
      owners: publishers.join(','),
      startDate: String(period.from),
      endDate: String(period.to),
      pagination: String(MESSAGES_PER_PAGE),
      cursor,
    });
    const url = `${coreUrl}/api/v0/messages.json?${query}`;
    const page: MessagesPage = await requestJson(url, { signal, timeoutMs: TIMEOUT_MS });
    for (const row of page.messages) {
      // A node that does not know one of the filters leaves it out.
      const { channel, content } = row;
      const isMeant =
        channel === SCORING_CHANNEL && TYPES.includes(content?.type) && trusted.has(String(content?.address));
      if (!isMeant) continue;
      const message = await verifyMetrics(source, row, trusted).catch((error) => {
        if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
        onRefused?.(refusalOf(row.item_hash, error));
      });
      onProgress?.(++verified);
      if (message) yield message;
    }
    cursor = page.next_cursor;
  }
}

async function readAggregate(
  { coreUrl, signal }: ScoringSource,
  owner: string,
  key: string,
): Promise<unknown> {
  try {
    const url = `${coreUrl}/api/v0/aggregates/${owner}.json?keys=${key}`;
    const answer = await requestJson<{ data: Record<string, unknown> }>(url, { signal });
    return answer.data[key];
  } catch (error) {
    if (error instanceof AppError && error.code === 'AGGREGATE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The version table that an owner publishes; empty where there is none. */
export async function readVersionTable(source: ScoringSource, owner: string): Promise<VersionTable> {
  return parseVersionTable((await readAggregate(source, owner, VERSIONS_KEY)) ?? {});
}

/** When each compute node was registered (Unix seconds), by node id; undefined where there is no list. */
export async function readRegistrations(
  source: ScoringSource,
  owner: string,
): Promise<Record<string, number> | undefined> {
  const list = (await readAggregate(source, owner, NODE_LIST_KEY)) as
    | { resource_nodes?: unknown }
    | undefined;
  if (list === undefined) return undefined;
  const rows = Array.isArray(list.resource_nodes) ? list.resource_nodes : [];
  return Object.fromEntries(
    rows.flatMap((row: { hash?: unknown; time?: unknown } | null) => {
      const isKnown = typeof row?.hash === 'string' && /^[0-9a-f]{64}$/i.test(row.hash);
      return isKnown && typeof row.time === 'number' && Number.isFinite(row.time)
        ? [[(row.hash as string).toLowerCase(), row.time]]
        : [];
    }),
  );
}
