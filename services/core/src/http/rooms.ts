import type { IncomingHttpHeaders } from 'node:http';
import type { RateLimitOptions, Standing } from '@skerry/kit';
import type { Runner } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { DiskReserve } from '../disk/reserve.ts';
import type { EventLog } from '../events/log.ts';
import type { Files } from '../files/files.ts';
import type { UploadLimits, Uploads } from '../files/uploads.ts';
import type { Health } from '../health/health.ts';
import type { Indexer } from '../indexer/indexer.ts';
import type { IpfsFiles } from '../ipfs/ipfs-files.ts';
import type { Intake } from '../messages/intake.ts';
import type { Pipeline } from '../messages/pipeline.ts';
import type { Kept } from '../messages/statement.ts';
import type { CoreMetrics } from '../metrics/metrics.ts';
import type { ForwardOptions } from '../programs/forward.ts';
import type { Sync } from '../sync/sync.ts';
import type { Taker } from '../sync/take.ts';
import type { Trust } from '../trust/trust.ts';
import type { Randomness } from '../vrf/randomness.ts';
import type { SealedBox } from '../webhooks/sealed-box.ts';
import type { Sender } from '../webhooks/send.ts';

/** What the routes may use. */
export interface Rooms {
  readonly db: Kysely<Schema>;
  readonly pipeline: Pipeline;
  readonly intake: Intake;
  readonly events: EventLog;
  readonly files: Files;
  /** What clients may have this node receive. */
  readonly uploads: Uploads;
  /** Who asks, for whatever is shared among clients. */
  readonly standingOf: (request: {
    readonly socket: { readonly remoteAddress?: string | undefined };
    readonly headers: IncomingHttpHeaders;
  }) => Standing;
  readonly secrets: SealedBox;
  /** Calls the endpoints of webhooks. */
  readonly sender: Sender;
  readonly metrics: CoreMetrics;
  readonly health: Health;
  /** Room on the disk that is left free. */
  readonly reserve: DiskReserve;
  readonly randomness: Randomness;
  /** By which other nodes know this one: it signs what the node says of itself. */
  readonly nodeAddress: string;
  /** Tells the network what this node publishes, where that is not told yet. */
  readonly announce: () => Promise<'published' | 'unchanged'>;
  /** Whom this node believes. */
  readonly trust: Trust;
  /** Asks peers whom they trust, where the settings leave it open. */
  learnTrust(): Promise<void>;
  /** Makes what is stored that of those who are trusted now; resolves when nothing is left. */
  deriveTrust(): Promise<void>;
  readonly indexer: Indexer;
  readonly ipfs: IpfsFiles;
  /** The compute nodes that programs are sent to. */
  readonly listRunners: () => Promise<readonly Runner[]>;
  /** How they are asked. */
  readonly forwarding: Omit<ForwardOptions, 'caller'>;
  readonly sync: Sync;
  /** What messages of other nodes go through. */
  readonly taker: Taker;
  /** Told of messages once they are durable. */
  onKept(listener: (kept: Kept) => void): void;
  /** Filled in by the door of gossip, where there is one: multiaddrs of this node. */
  readonly network: { addresses: () => readonly string[] };
  /** Milliseconds since 1970: the machine's clock, corrected where most clocks of peers say another time. */
  readonly now: () => number;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly settings: RouteSettings;
}

export interface RouteSettings {
  readonly nodeName: string;
  /** How long POST /instances waits for the scheduler before it answers without an address. */
  readonly allocationWaitMs: number;
  readonly uploadLimitBytes: number;
  readonly uploads: UploadLimits;
  /** How long POST /ipfs/pin waits for the file before it answers that it is pending. */
  readonly ipfsPinWaitMs: number;
  /** Event streams open at once, of all clients. */
  readonly maxStreams: number;
  /** Of them, those kept for clients that are exempt from the rate limit. */
  readonly streamReserve: number;
  readonly streamsPerClient: number;
  /** How long a reader of a stream may leave unread what it was given. */
  readonly streamStallMs: number;
  readonly limits: RateLimitOptions;
  /** How long requests that run may go on when the node stops. */
  readonly drainMs: number;
}
