import {
  AppError,
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

export interface ScoringSource {
  /** Where the core node is, without `/api/v0`. */
  readonly coreUrl: string;
  readonly signal?: AbortSignal | undefined;
}

/** Messages may be megabytes; a page of them is held at once. */
const MESSAGES_PER_PAGE = 10;
const TIMEOUT_MS = 120_000;
const NODE_LIST_KEY = 'corechannel';

interface MessagesPage {
  readonly messages: readonly {
    readonly item_hash: string;
    readonly time: number;
    readonly channel: string | null;
    readonly content: {
      readonly address?: unknown;
      readonly type?: unknown;
      readonly content?: unknown;
    } | null;
  }[];
  readonly next_cursor: string | null;
}

/** The metrics messages of these publishers, newest first, a page at a time. */
export async function* readMetricsMessages(
  { coreUrl, signal }: ScoringSource,
  publishers: readonly string[],
  period: Period,
): AsyncGenerator<MetricsMessage> {
  const trusted = new Set(publishers);
  const types: readonly unknown[] = METRICS_POST_TYPES;
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
    for (const { item_hash, time, channel, content } of page.messages) {
      // A node that does not know one of the filters leaves it out.
      const counts =
        channel === SCORING_CHANNEL && types.includes(content?.type) && trusted.has(String(content?.address));
      if (counts) yield { itemHash: item_hash, time, report: parseMetricsReport(content!.content) };
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
