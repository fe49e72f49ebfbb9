import {
  AppError,
  type ErrorCode,
  fieldsOf,
  METRICS_POST_TYPES,
  type MetricsMessage,
  NODE_LIST_KEY,
  type Period,
  parseMetricsReport,
  parseVersionTable,
  SCORING_CHANNEL,
  VERSIONS_KEY,
  type VersionTable,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { call, callRows, type UnreadableRow } from '../call.ts';
import { readPages } from '../pages.ts';
import { readAggregate } from '../reads/aggregate.ts';
import { saysNothing } from '../reads/says-nothing.ts';
import { type SignedMessageSource, verifyListed } from '../signed-message.ts';

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

const TYPES: readonly unknown[] = METRICS_POST_TYPES;

/** What the publisher signed, with its own key: what others sign on its behalf does not count. */
async function verifyMetrics(
  source: ScoringSource,
  row: NetworkMessageView,
  trusted: ReadonlySet<string>,
): Promise<MetricsMessage> {
  const { itemHash, sender, type, time, content } = await verifyListed(source, row);
  if (!trusted.has(sender))
    throw new AppError('INVALID_SIGNATURE', `${itemHash} was signed by ${sender}, who is not a publisher`);
  const { address, type: contentType, content: report } = fieldsOf(content);
  if (
    itemHash !== row.item_hash ||
    type !== 'POST' ||
    !TYPES.includes(contentType) ||
    String(address ?? sender).toLowerCase() !== sender.toLowerCase()
  )
    throw new AppError('INVALID_CONTENT', `${itemHash} is not a measurement by ${sender}`);
  return { itemHash, time, report: parseMetricsReport(report) };
}

const refusalOf = (itemHash: string, { code, message }: AppError): RefusedMessage => ({
  itemHash,
  code,
  message,
});

/** A row in another form, as a message that does not count. */
export const refusalOfRow = ({ row, error }: UnreadableRow): RefusedMessage => {
  const { item_hash: itemHash } = fieldsOf(row);
  return refusalOf(typeof itemHash === 'string' ? itemHash : 'a row without a hash', error);
};

const metricsOf = (publishers: readonly string[]) => ({
  msgTypes: 'POST',
  contentTypes: METRICS_POST_TYPES.join(','),
  channels: SCORING_CHANNEL,
  owners: publishers.join(','),
});

/**
 * The newest metrics message of these publishers; undefined where there is none. Throws AppError where it is not what its
 * publisher signed.
 */
export async function readNewestMetrics(
  source: SignedMessageSource,
  publishers: readonly string[],
): Promise<MetricsMessage | undefined> {
  const query = { ...metricsOf(publishers), pagination: 1 };
  const { messages } = await call(
    source.coreUrl,
    NETWORK_LISTS_API.listNetworkMessages,
    { query },
    {
      signal: source.signal,
      timeoutMs: TIMEOUT_MS,
    },
  );
  const [row] = messages;
  return row && verifyMetrics(source, row, new Set(publishers));
}

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
  const filter = {
    ...metricsOf(publishers),
    startDate: period.from,
    endDate: period.to,
    pagination: MESSAGES_PER_PAGE,
  };
  const options = { signal, timeoutMs: TIMEOUT_MS };
  const read = (place: object) =>
    callRows(
      coreUrl,
      NETWORK_LISTS_API.listNetworkMessages,
      'messages',
      { query: { ...filter, ...place } },
      options,
    );
  for await (const { messages, unreadable } of readPages(read)) {
    for (const one of unreadable) onRefused?.(refusalOfRow(one));
    for (const row of messages) {
      // A node that does not know one of the filters leaves it out.
      const { channel, content } = row;
      const { type, address } = fieldsOf(content);
      const isMeant = channel === SCORING_CHANNEL && TYPES.includes(type) && trusted.has(String(address));
      if (!isMeant) continue;
      const message = await verifyMetrics(source, row, trusted).catch((error) => {
        if (!(error instanceof AppError) || saysNothing(error)) throw error;
        onRefused?.(refusalOf(row.item_hash, error));
      });
      onProgress?.(++verified);
      if (message) yield message;
    }
  }
}

/** The version table that an owner publishes; empty where there is none. */
export async function readVersionTable(
  { coreUrl, signal }: ScoringSource,
  owner: string,
): Promise<VersionTable> {
  return parseVersionTable((await readAggregate(coreUrl, owner, VERSIONS_KEY, { signal })) ?? {});
}

/** When each compute node was registered (Unix seconds), by node id; undefined where there is no list. */
export async function readRegistrations(
  { coreUrl, signal }: ScoringSource,
  owner: string,
): Promise<Record<string, number> | undefined> {
  const list = await readAggregate(coreUrl, owner, NODE_LIST_KEY, { signal });
  if (list === undefined) return undefined;
  const { resource_nodes: rows } = fieldsOf(list);
  return Object.fromEntries(
    (Array.isArray(rows) ? rows : []).flatMap((row: unknown) => {
      const { hash, time } = fieldsOf(row);
      const isKnown = typeof hash === 'string' && /^[0-9a-f]{64}$/i.test(hash);
      return isKnown && typeof time === 'number' && Number.isFinite(time) ? [[hash.toLowerCase(), time]] : [];
    }),
  );
}
