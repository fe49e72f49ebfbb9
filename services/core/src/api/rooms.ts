import type { IncomingHttpHeaders } from 'node:http';
import type { Indexer } from '@skerry/indexer';
import type { Client, RateLimitOptions } from '@skerry/kit';
import type { NodeProofClaim, NodeProofView, Runner } from '@skerry/protocol';
import type { NetworkService } from '@skerry/protocol/api/core/node';
import type { Kysely } from 'kysely';
import type { Pool } from 'pg';
import type { Intake } from '../intake/intake.ts';
import type { Health } from '../node/health/health.ts';
import type { CoreMetrics } from '../node/metrics/metrics.ts';
import type { Role } from '../node/processes/roles.ts';
import type { Randomness } from '../node/vrf/randomness.ts';
import type { EventLog } from '../notify/events/log.ts';
import type { SealedBox } from '../notify/webhooks/sealed-box.ts';
import type { Sync } from '../peers/sync/sync.ts';
import type { Trust } from '../peers/trust/trust.ts';
import type { Files } from '../store/files/files.ts';
import type { Parts } from '../store/files/parts/parts.ts';
import type { UnpinnedLimits, Uploads } from '../store/files/uploads.ts';
import type { IpfsFiles } from '../store/ipfs/ipfs-files.ts';
import type { Reads } from '../store/reads.ts';
import type { Schema } from '../store/schema.ts';
import type { ForwardOptions } from './programs/forward.ts';
import type { Answers } from './shares/answers.ts';
import type { Askers } from './shares/askers.ts';
import type { FileReads } from './shares/file-reads.ts';
import type { LongLists } from './shares/long-lists.ts';
import type { Places, UploadLimits } from './shares/places.ts';

/** What the routes may use. */
export interface Rooms {
  /** What is asked for answers: of the database's connections it has a part, and each client its share. */
  readonly db: Kysely<Schema>;
  /** The same connections. */
  readonly pool: Pool;
  /** The same, for what is read once for many: it counts to nobody. */
  readonly commonDb: Kysely<Schema>;
  /** Whose share it is. */
  readonly askers: Askers;
  /** The same, for requests that a standby may answer: it does within `reads.run`. */
  readonly reads: Reads;
  /** The number of the last event that this process has written or heard of: what it has told anybody is in the log by then. */
  readonly lastEvent: () => number;
  readonly intake: Intake;
  /** Has decided again what a route put in line. */
  readonly resumeLine: () => void;
  readonly events: EventLog;
  readonly files: Files;
  /** What clients may have this node keep. */
  readonly uploads: Uploads;
  /** Who sends files. */
  readonly uploadPlaces: Places;
  readonly parts: Parts;
  /** Who asks, for whatever is shared among clients. */
  readonly clientOf: (request: {
    readonly socket: { readonly remoteAddress?: string | undefined };
    readonly headers: IncomingHttpHeaders;
  }) => Client;
  /** Who reads files. */
  readonly fileReads: FileReads;
  /** What all answers together hold. */
  readonly answers: Answers;
  /** Who has lists read that take long. */
  readonly longLists: LongLists;
  readonly secrets: SealedBox;
  readonly metrics: CoreMetrics;
  readonly health: Health;
  readonly randomness: Randomness;
  /** By which other nodes know this one: it signs what the node says of itself. */
  readonly nodeAddress: string;
  /** Signs that its key answers at a place. */
  readonly proveKey: (asked: Pick<NodeProofClaim, 'place' | 'challenge'>) => NodeProofView;
  /** Whom this node believes. */
  readonly trust: Trust;
  readonly indexer: Indexer;
  readonly ipfs: IpfsFiles;
  /** The compute nodes that programs are sent to, as they were a second ago at most. */
  readonly listRunners: () => Promise<readonly Runner[]>;
  readonly listRunnersNow: () => Promise<readonly Runner[]>;
  /** How they are asked. */
  readonly forwarding: Omit<ForwardOptions, 'caller'>;
  readonly sync: Sync;
  /** Where nodes that gossip find this one. */
  readonly network: { /** Multiaddrs; none where it does not gossip. */ addresses(): readonly string[] };
  /** Milliseconds since 1970: the machine's clock, corrected where most clocks of peers say another time. */
  readonly now: () => number;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly settings: RouteSettings;
}

/** Settings of the node, by their names. */
export interface RouteSettings extends UploadLimits, UnpinnedLimits {
  /** What this process does; without `answer` it says how it is, and nothing else. */
  readonly roles: readonly Role[];
  readonly name: string;
  /** Where others reach the node, as its operator says. */
  readonly urls: readonly string[];
  /** Where services of the network are. */
  readonly services: Partial<Record<NetworkService, string>>;
  /** How long POST /instances waits for the scheduler before it answers without an address. */
  readonly allocationWaitMs: number;
  readonly uploadLimitBytes: number;
  /** How long POST /ipfs/pin waits for the file before it answers that it is pending. */
  readonly ipfsPinWaitMs: number;
  /** Event streams open at once, of all clients. */
  readonly maxStreams: number;
  /** Of them, those kept for clients that are exempt from the rate limit. */
  readonly streamReserve: number;
  readonly streamsPerClient: number;
  /** How long a reader of a stream may leave unread what it was given. */
  readonly streamStallMs: number;
  /** WebSockets open at once, of all clients. */
  readonly maxSockets: number;
  /** Of them, those kept for clients that are exempt from the rate limit. */
  readonly socketReserve: number;
  readonly socketsPerClient: number;
  readonly limits: RateLimitOptions;
  /** Whether addresses that are not public may be asked where somebody else names them. */
  readonly allowPrivate: boolean;
  /** By which the node's operator is known; where there is none, nobody is. */
  readonly operatorToken: string | undefined;
  /** How long requests that run may go on when the node stops. */
  readonly drainMs: number;
}
