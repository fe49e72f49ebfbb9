import Type, { type Static } from 'typebox';
import { Firewall } from './content/instance.ts';
import { Phase, Reason } from './content/network.ts';

/** What the network answers: the shapes of responses, in wire spelling. Unknown fields may be added by newer nodes. */

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });

export const PaginationView = Type.Object({
  total: Type.Integer(),
  page: Type.Integer(),
  per_page: Type.Integer(),
  total_pages: Type.Integer(),
});
export type PaginationView = Static<typeof PaginationView>;

export const MessageView = Type.Object({
  item_hash: Hash,
  chain: Type.String(),
  sender: Type.String(),
  type: Type.String(),
  channel: Type.String(),
  timestamp: Type.Integer({ description: 'Unix seconds' }),
  content: Type.Unknown(),
  signature: Type.String(),
  signed_text: Type.String({ description: 'the exact text that the signature covers' }),
  confirmations: Type.Array(
    Type.Object({ chain: Type.String(), height: Type.Integer(), hash: Type.String() }),
  ),
});
export type MessageView = Static<typeof MessageView>;

export const InstanceStatus = Type.Union([Type.Literal('running'), Type.Literal('stopped')]);

export const InstanceView = Type.Object({
  instance_id: Hash,
  owner: Type.String(),
  name: Type.String(),
  description: Type.String(),
  cpu: Type.Integer({ description: 'virtual cores' }),
  memory: Type.Integer({ description: 'MiB' }),
  disk: Type.Integer({ description: 'GiB' }),
  image: Type.String(),
  ipv6: Type.String({ description: 'empty while no node was chosen' }),
  status: InstanceStatus,
  created_at: Type.Integer({ description: 'Unix seconds' }),
  updated_at: Type.Integer({ description: 'Unix seconds' }),
  ssh_key: Type.String(),
  firewall: Firewall,
  desired: InstanceStatus,
  restart_id: Type.Union([Hash, Type.Null()], { description: 'the message that last asked for a restart' }),
  node_id: Type.Union([Hash, Type.Null()]),
  node_address: Type.Union([Type.String(), Type.Null()]),
  phase: Phase,
  reason: Type.Union([Reason, Type.Null()]),
});
export type InstanceView = Static<typeof InstanceView>;

export const SubmitView = Type.Object({ item_hash: Hash, status: Type.Literal('success') });
export type SubmitView = Static<typeof SubmitView>;

/** A change, as the event stream tells it. `cursor` is opaque; to resume, send the last one seen. */
export type NetworkEvent =
  | { cursor: string; kind: 'message'; time_ms: number; data: MessageEventData }
  | { cursor: string; kind: 'instance'; time_ms: number; data: InstanceView };

export interface MessageEventData {
  item_hash: string;
  type: string;
  sender: string;
  channel: string;
  timestamp: number;
  /** The type of a POST, or null. */
  content_type: string | null;
}
