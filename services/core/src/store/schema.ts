import type {
  CreditState,
  ErrorCode,
  Firewall,
  InstanceStamps,
  MessageForm,
  MessageStatus,
  NetworkEvent,
  Phase,
  Program,
  Reason,
  ResourceKind,
  WebhookEvent,
  WebhookFilters,
} from '@skerry/protocol';
import type { ColumnType, Generated } from 'kysely';

/** Why a message is pending, rejected or forgotten. */
export interface VerdictReason {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Where it comes from whom a node trusts: its own settings, what its peers do, or nobody said anything. */
export type TrustSource = 'setting' | 'peers' | 'unset';

/** A place in the messages of one kind: newest first. */
export interface Place {
  /** Of the kinds of content that are looked at. */
  readonly kind: number;
  readonly time: number;
  readonly itemHash: string;
}

export type WebhookStatus = 'active' | 'paused' | 'disabled' | 'deleted';
export type DeliveryState = 'waiting' | 'delivered' | 'dead';

/** One attempt of a delivery, as its log keeps it. */
export interface AttemptNote {
  readonly at_ms: number;
  readonly duration_ms: number;
  /** HTTP status, where there was an answer. */
  readonly status: number | null;
  /** Why it failed. */
  readonly code?: ErrorCode;
  readonly message?: string;
}

/** bigint columns are read as numbers (see connect.ts): seconds, milliseconds and sizes stay far below 2^53. */
type Json<T> = ColumnType<T, string, string>;

/** A field of an element of an aggregate. */
interface AggregateEntry {
  owner: string;
  key: string;
  field: string;
  value: Json<unknown>;
  time: number;
  item_hash: string;
}

export interface Schema {
  messages: {
    item_hash: string;
    form: MessageForm;
    chain: string;
    sender: string;
    signed_sender: string | null;
    /** On whose behalf: the sender, unless the message names somebody else. */
    owner: string;
    type: string;
    channel: string | null;
    /** Unix seconds. */
    time: number;
    /** Of the network form, where the time beside the content is another one. */
    sent_time: Generated<number | null>;
    content_type: string | null;
    /** What the message speaks of (intake/accepted.ts). */
    subject: string | null;
    tags: string[];
    shape: number | null;
    /** null: a file that is not at hand. */
    content: Json<Record<string, unknown> | null>;
    source_text: string | null;
    /** What it said was erased (intake/erase.ts): a FORGET in force names it or its post, or none does any more and its text is wanted. */
    erased: Generated<'forgotten' | 'wanted' | null>;
    signature: string;
    status: MessageStatus;
    reason: Json<VerdictReason | null>;
    /** Milliseconds since 1970: a message that still lacks something then is rejected. */
    decide_by_ms: number;
    /** Milliseconds since 1970: when it got its status. */
    settled_at_ms: number;
    received_at: Generated<Date>;
    /** Milliseconds since 1970: when the first core node took it; null of an envelope that came in time (packages/protocol/src/sync/shared.ts). */
    noted_ms: Generated<number | null>;
  };
  message_tags: {
    item_hash: string;
    tag: string;
    type: string;
    sender: string;
    channel: string | null;
    shape: number | null;
    time: number;
  };
  shapes: {
    id: Generated<number>;
    digest: string;
    type: string;
    content_type: string | null;
    paths: string[];
  };
  totals: { a: string; b: string; total: number; heavy: Generated<boolean> };
  dependencies: { key: string; item_hash: string };
  reconsider: { item_hash: string; turn: Generated<number> };
  reconsider_rest: { key: string; after: string; turn: Generated<number>; again: string | null };
  forgets: { target: string; forget_hash: string };
  aggregates: { owner: string; key: string; created: number; time: number; item_hash: string };
  aggregate_entries: AggregateEntry;
  /** Of earlier elements, beneath those. */
  aggregate_covered: AggregateEntry;
  aggregate_totals: { kind: 'a' | 'k' | 'f' | 'b'; key: string; field: string; total: number };
  amended_posts: {
    item_hash: string;
    owner: string;
    type: string;
    ref: string | null;
    channel: string | null;
    tags: string[];
    updated: number;
    latest_hash: string;
  };
  programs: {
    program_hash: string;
    owner: string;
    content: Json<Program>;
    created: number;
    /** Unix seconds (protocol's effectiveTime). */
    effective: number;
    /** JSON (state/programs/standing.ts). */
    standing: ColumnType<unknown, string | null, string | null>;
  };
  webhooks: {
    webhook_id: string;
    owner: string;
    url: string;
    events: WebhookEvent[];
    secret: Buffer;
    created: number;
    number: Generated<number>;
    filters: Json<WebhookFilters>;
    concurrency: Generated<number>;
    status: Generated<WebhookStatus>;
    reason: Json<VerdictReason | null>;
    old_secret: Buffer | null;
    old_secret_until_ms: number | null;
    behind_seq: number | null;
    failing_since_ms: number | null;
    hold_until_ms: Generated<number>;
    delivered_ms: number | null;
    updated_ms: Generated<number>;
    version: Generated<number>;
  };
  webhook_planner: { id: Generated<boolean>; last_seq: number; version: number };
  webhook_deliveries: {
    webhook: number;
    seq: number;
    event: string;
    state: Generated<DeliveryState>;
    attempts: Generated<number>;
    due_ms: number;
    planned_ms: number;
    settled_ms: number | null;
    log: Json<AttemptNote[]>;
  };
  webhook_replays: { id: Generated<number>; webhook: number; next_seq: number; last_seq: number };
  webhook_requests: { item_hash: string; time_ms: number };
  webhook_clock: { id: Generated<boolean>; aged_ms: number; ahead_ms: number; lead_ms: number };
  sync_transfers: { peer: string; place: string };
  digests: { name: string; sum: string; count: number };
  trust: {
    name: string;
    value: Json<readonly string[]>;
    source: TrustSource;
    told_by: Json<readonly string[]>;
    derived: Json<readonly string[] | null>;
    place: Json<Place | null>;
  };
  instances: {
    instance_id: string;
    owner: string;
    name: string;
    description: string;
    cpu: number;
    memory_mib: number;
    disk_gib: number;
    image: string;
    ssh_key: string;
    firewall: Json<Firewall>;
    desired: 'running' | 'stopped';
    restart_id: string | null;
    node_id: string | null;
    node_address: string | null;
    ipv6: string;
    phase: Phase;
    reason: Json<Reason | null>;
    created_at: number;
    updated_at: number;
    effective_at: number;
    stamps: Json<InstanceStamps>;
  };
  events: {
    seq: number;
    kind: NetworkEvent['kind'];
    data: Json<unknown>;
    time_ms: number;
    cause: string | null;
  };
  event_counter: {
    id: Generated<boolean>;
    last_seq: number;
    schema_version: Generated<number>;
    timeline: string;
  };
  set_changes: {
    seq: number;
    mark: string;
    after: string | null;
    moves: Buffer;
    forgotten: Buffer | null;
    last_event: number;
    written_at: Generated<Date>;
  };
  processes: {
    id: string;
    host: string;
    pid: number;
    roles: string[];
    identity: Json<Record<string, string>>;
    started_at: Generated<Date>;
    seen_at: Generated<Date>;
  };
  key_files: { name: string; fingerprint: string; noted_at: Generated<Date> };
  doomed_blobs: { hash: string; doomed_ms: number };
  sweep_marks: { id: Generated<boolean>; word: string; before: string | null };
  leases: { name: string; holder: string; until: Date };
  credit_publishers: { address: string };
  metrics_publishers: { address: string };
  credit_resources: {
    item_hash: string;
    owner: string;
    kind: ResourceKind;
    created: number;
    units: number;
    mib: number;
  };
  credit_prices: { kind: ResourceKind; from_time: number; compute_unit: string; storage_mib: string };
  credit_entries: {
    item_hash: string;
    place: number;
    key: string;
    kind: 'purchase' | 'expense';
    owner: string;
    nano: string;
    ref: string;
    time: number;
    counts: Generated<boolean>;
  };
  credit_notices: {
    item_hash: string;
    owner: string;
    state: CreditState;
    credits: number;
    runs_out_at: number | null;
    time: number;
  };
  files: { hash: string; size_bytes: number; content_type: string; stored_at: Generated<Date> };
  files_in_parts: { file: string; name: string; received_bytes: number; written_ms: number };
  pieces_of_files: { piece: string; file: string; first_byte: number | null };
  unpinned_uploads: { hash: string; client: string; bytes: number };
  file_pins: { file_hash: string; message_hash: string; owner: string };
  ipfs_dags: { root: string; complete: boolean; touched_ms: number };
  ipfs_blocks: { block: Buffer; root: string };
  ipfs_contents: { hash: string; bytes: Buffer };
  wanted_files: {
    hash: string;
    attempts: Generated<number>;
    due_ms: number;
    reason: Json<VerdictReason | null>;
  };
  anchor_events: {
    network: string;
    block_number: number;
    log_index: number;
    tx_hash: string;
    emitter: string;
    content: string;
    cid: string | null;
    state: 'waiting' | 'processed' | 'refused';
    reason: Json<VerdictReason | null>;
    attempts: Generated<number>;
    due_ms: number;
    seen_ms: number;
    messages: Generated<number>;
    block_time: number | null;
    dated: Generated<boolean>;
  };
  anchor_networks: {
    network: string;
    settled_block: Generated<number>;
    read_block: number | null;
    genesis_hash: string | null;
    reading: string | null;
    contract: string | null;
    start_block: number | null;
    packed_seq: Generated<number>;
  };
  confirmations: {
    item_hash: string;
    chain: string;
    network: string;
    block_number: number;
    log_index: number;
    tx_hash: string;
    sender: string;
  };
  packed_archives: {
    id: Generated<number>;
    network: string;
    cid: string;
    messages: number;
    tx_hash: string | null;
    nonce: number | null;
    max_fee: string | null;
    sends: Generated<number>;
    sent_ms: number | null;
    settled: Generated<boolean>;
    made_ms: number;
  };
}

/** Messages, and what follows from them alone: who forgets all messages empties these. A migration that adds such a table adds it here. */
export const MESSAGE_TABLES = [
  ...[
    'messages',
    'message_tags',
    'shapes',
    'totals',
    'dependencies',
    'reconsider',
    'reconsider_rest',
    'forgets',
  ],
  ...['aggregates', 'aggregate_entries', 'aggregate_covered', 'aggregate_totals', 'amended_posts'],
  ...['instances', 'programs', 'file_pins', 'digests', 'events'],
  ...['credit_resources', 'credit_entries', 'credit_notices'],
] as const satisfies readonly (keyof Schema)[];
