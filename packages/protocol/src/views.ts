import Type, { type Static } from 'typebox';
import { Firewall } from './content/instance.ts';
import { Phase, type ProgramRun, Reason } from './content/network.ts';
import { ANY_HASH_PATTERN, HASH64_PATTERN } from './network-form/item-hash.ts';

/** What the network answers: the shapes of responses, in wire spelling. Unknown fields may be added by newer nodes. */

const Hash = Type.String({ pattern: HASH64_PATTERN });
const MessageHash = Type.String({ pattern: ANY_HASH_PATTERN, description: 'SHA-256, or a CID' });

/**
 * What became of a message. `pending`: it lacks something, and is decided again when that comes; `rejected`: it is not
 * valid, or lacked something for too long; `forgotten`: its owner took it back.
 */
export const MessageStatus = Type.Enum(['pending', 'processed', 'rejected', 'forgotten']);
export type MessageStatus = Static<typeof MessageStatus>;

export const PaginationView = Type.Object(
  {
    total: Type.Integer(),
    page: Type.Integer(),
    per_page: Type.Integer(),
    total_pages: Type.Integer(),
  },
  { title: 'Pagination' },
);
export type PaginationView = Static<typeof PaginationView>;

export const MessageView = Type.Object(
  {
    item_hash: MessageHash,
    chain: Type.String(),
    sender: Type.String(),
    type: Type.String(),
    channel: Type.Union([Type.String(), Type.Null()]),
    timestamp: Type.Integer({ description: 'Unix seconds' }),
    content: Type.Unknown({ description: 'null once the message is forgotten' }),
    signature: Type.String(),
    signed_text: Type.Union([Type.String(), Type.Null()], {
      description: 'the exact text that the signature covers; null once the message is forgotten',
    }),
    confirmations: Type.Array(
      Type.Object({ chain: Type.String(), height: Type.Integer(), hash: Type.String() }),
    ),
  },
  { title: 'Message' },
);
export type MessageView = Static<typeof MessageView>;

/** `GET /messages/{hash}/status`. */
export const MessageStatusView = Type.Object(
  {
    item_hash: MessageHash,
    status: MessageStatus,
    reception_time: Type.String({ format: 'date-time' }),
    reason: Type.Union([Reason, Type.Null()]),
  },
  { title: 'MessageStatus' },
);
export type MessageStatusView = Static<typeof MessageStatusView>;

export const InstanceStatus = Type.Union([Type.Literal('running'), Type.Literal('stopped')]);

export const InstanceView = Type.Object(
  {
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
    effective_at: Type.Optional(
      Type.Integer({
        description:
          'Unix seconds: what names, queues and prices go by. It is created_at, or, where the message came more than ten minutes after its timestamp, when a core node first had it',
      }),
    ),
    placed: Type.Optional(Type.Boolean({ description: 'whether it ever had an address' })),
    ssh_key: Type.String(),
    firewall: Firewall,
    desired: InstanceStatus,
    restart_id: Type.Union([Hash, Type.Null()], { description: 'the message that last asked for a restart' }),
    node_id: Type.Union([Hash, Type.Null()]),
    node_address: Type.Union([Type.String(), Type.Null()]),
    phase: Phase,
    reason: Type.Union([Reason, Type.Null()]),
  },
  { title: 'Instance' },
);
export type InstanceView = Static<typeof InstanceView>;

export const SubmitView = Type.Object({ item_hash: MessageHash, status: Type.Literal('success') });
export type SubmitView = Static<typeof SubmitView>;

/** A change, as the event stream tells it. `cursor` is opaque; to resume, send the last one seen. */
export type NetworkEvent =
  | { cursor: string; kind: 'message'; time_ms: number; data: MessageEventData }
  | { cursor: string; kind: 'message_removed'; time_ms: number; data: MessageRemovedData }
  | { cursor: string; kind: 'message_confirmed'; time_ms: number; data: MessageConfirmedData }
  | { cursor: string; kind: 'message_unconfirmed'; time_ms: number; data: MessageUnconfirmedData }
  | { cursor: string; kind: 'instance'; time_ms: number; data: InstanceView }
  | { cursor: string; kind: 'instance_removed'; time_ms: number; data: { instance_id: string } }
  | { cursor: string; kind: 'program_executed'; time_ms: number; data: ProgramExecutedData };

export interface MessageEventData {
  item_hash: string;
  type: string;
  sender: string;
  channel: string | null;
  timestamp: number;
  /** The type of a POST, or null. */
  content_type: string | null;
  /** Left out where there are none. */
  tags?: string[];
}

/** A run of a program that ended, as the compute node told it. */
export interface ProgramExecutedData extends ProgramRun {
  owner: string;
  node_id: string;
}

/** That a chain has a message. `hash`: of the transaction. */
export type ConfirmationView = MessageView['confirmations'][number];

/** The first confirmation of a message. */
export interface MessageConfirmedData extends MessageEventData {
  confirmation: ConfirmationView;
}

/** The chain was reorganised, and nothing confirms the message now. */
export interface MessageUnconfirmedData {
  item_hash: string;
  confirmation: ConfirmationView;
}

/** A message that is not in force any more: forgotten, or judged otherwise since something older became known. */
export interface MessageRemovedData {
  item_hash: string;
  status: MessageStatus;
  reason: Reason | null;
}
