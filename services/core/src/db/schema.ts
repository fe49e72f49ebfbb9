import type { Firewall, Phase, Reason } from '@skerry/protocol';
import type { ColumnType, Generated } from 'kysely';

/** Which message a part of the state was taken from: [when, item hash]. The greater stamp wins, whatever arrived first. */
export type Stamp = readonly [number, string];

/** null: still as the INSTANCE message said. Whatever names an instance comes after it, also within the same second. */
export interface InstanceStamps {
  readonly name: Stamp | null;
  readonly description: Stamp | null;
  readonly firewall: Stamp | null;
  readonly desired: Stamp | null;
  readonly restart: Stamp | null;
  /** Milliseconds, as the scheduler wrote them. */
  readonly allocation: Stamp | null;
  /** Milliseconds, as the node wrote them. */
  readonly status: Stamp | null;
}

/** bigint columns are read as numbers (see connect.ts): seconds, milliseconds and sizes stay far below 2^53. */
type Json<T> = ColumnType<T, string, string>;

export interface Schema {
  messages: {
    item_hash: string;
    chain: string;
    sender: string;
    type: string;
    channel: string;
    timestamp: number;
    post_type: string | null;
    content: Json<Record<string, unknown>>;
    signed_text: string;
    signature: string;
    received_at: Generated<Date>;
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
    stamps: Json<InstanceStamps>;
  };
  events: { seq: number; kind: 'message' | 'instance'; data: Json<unknown>; time_ms: number };
  event_counter: { id: Generated<boolean>; last_seq: number };
  files: { hash: string; size_bytes: number; content_type: string; stored_at: Generated<Date> };
  file_pins: { file_hash: string; message_hash: string; owner: string };
}
