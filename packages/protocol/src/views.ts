import { Firewall } from './content/instance.ts';
import { Phase, ProgramRun, Reason } from './content/network.ts';
import { LIMITS } from './limits.ts';
import { ANY_HASH_PATTERN, HASH64_PATTERN } from './network-form/item-hash.ts';
import { type Static, type TSchema, Type } from './type.ts';

/** What the network answers: the shapes of responses, in wire spelling. Unknown fields may be added by newer nodes. */

const Hash = Type.String({ pattern: HASH64_PATTERN });
const MessageHash = Type.String({ pattern: ANY_HASH_PATTERN, description: 'SHA-256, or a CID' });

/**
 * What became of a message. `pending`: it lacks something, and is decided again when that comes; `rejected`: it is not
 * valid, or lacked something for too long; `forgotten`: its owner took it back.
 */
export const MessageStatus = Type.Enum(['pending', 'processed', 'rejected', 'forgotten']);
export type MessageStatus = Static<typeof MessageStatus>;

/** What `bodies=shared` adds to a message. */
const SharedBody = Type.Optional(
  Type.Union([Type.String(), Type.Null()], {
    description: `the signed message as nodes pass it on; null where its text is gone, or, in lists and events, has more than ${LIMITS.listedBodyBytes} bytes`,
  }),
);

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
      Type.Object({
        chain: Type.String(),
        height: Type.Integer({ description: 'of the block' }),
        hash: Type.String({ description: 'of the transaction' }),
      }),
    ),
    shared: SharedBody,
  },
  { title: 'Message' },
);
export type MessageView = Static<typeof MessageView>;

/** Why a message is as it is. What it says of the message may be as long as the message. */
const VerdictReason = Type.Object({ code: Type.String(), message: Type.String() });

/** `GET /messages/{hash}/status`. */
export const MessageStatusView = Type.Object(
  {
    item_hash: MessageHash,
    status: MessageStatus,
    reception_time: Type.String({ format: 'date-time' }),
    reason: Type.Union([VerdictReason, Type.Null()]),
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
    node_id: Type.Union([Hash, Type.Null()], { description: 'the compute node that was chosen' }),
    node_address: Type.Union([Type.String(), Type.Null()], { description: 'whose key speaks for that node' }),
    phase: Phase,
    reason: Type.Union([Reason, Type.Null()], {
      description: 'why; codes are in docs/api.md, "Phases", and docs/errors.md',
    }),
  },
  { title: 'Instance' },
);
export type InstanceView = Static<typeof InstanceView>;

export const SubmitView = Type.Object({ item_hash: MessageHash, status: Type.Literal('success') });
export type SubmitView = Static<typeof SubmitView>;

const MessageEventData = Type.Object({
  item_hash: MessageHash,
  type: Type.String(),
  sender: Type.String(),
  channel: Type.Union([Type.String(), Type.Null()]),
  timestamp: Type.Integer({ description: 'Unix seconds' }),
  content_type: Type.Union([Type.String(), Type.Null()], { description: 'the type of a POST, or null' }),
  tags: Type.Optional(Type.Array(Type.String(), { description: 'left out where there are none' })),
});
export type MessageEventData = Static<typeof MessageEventData>;

const Confirmation = MessageView.properties.confirmations.items;

const eventOf = <const Kind extends string, D extends TSchema>(kind: Kind, data: D) =>
  Type.Object({ cursor: Type.String(), kind: Type.Literal(kind), time_ms: Type.Integer(), data });

/** Changes, as the event stream tells them. `cursor` is opaque; to resume, send the last one seen. */
export const NETWORK_EVENTS = {
  message: Type.Object({ ...eventOf('message', MessageEventData).properties, shared: SharedBody }),
  /** A message that is not in force any more: forgotten, or judged otherwise since something older became known. */
  message_removed: eventOf(
    'message_removed',
    Type.Object({
      item_hash: MessageHash,
      status: MessageStatus,
      reason: Type.Union([VerdictReason, Type.Null()]),
    }),
  ),
  /** The first confirmation of a message. */
  message_confirmed: eventOf(
    'message_confirmed',
    Type.Object({ ...MessageEventData.properties, confirmation: Confirmation }),
  ),
  /** The chain was reorganised, and nothing confirms the message now. */
  message_unconfirmed: eventOf(
    'message_unconfirmed',
    Type.Object({ item_hash: MessageHash, confirmation: Confirmation }),
  ),
  instance: Type.Object({
    ...eventOf('instance', InstanceView).properties,
    cause: Type.Optional(
      Type.Union([MessageHash, Type.Null()], {
        description:
          'the message that changed it; null where several did at once, where one was taken back, and in events of older releases',
      }),
    ),
    shared: SharedBody,
  }),
  instance_removed: eventOf('instance_removed', Type.Object({ instance_id: Hash })),
  /** A run of a program that ended, as the compute node told it. */
  program_executed: eventOf(
    'program_executed',
    Type.Object({ ...ProgramRun.properties, owner: Type.String(), node_id: Hash }),
  ),
};
export type NetworkEvent = Static<(typeof NETWORK_EVENTS)[keyof typeof NETWORK_EVENTS]>;

export const NODE_PROOF_PATH = '/status/proof';

/** What a node answers at `NODE_PROOF_PATH?challenge=` (node-proof.ts). */
export const NodeProofView = Type.Object({
  node_id: Hash,
  place: Type.String({ maxLength: LIMITS.urlChars, description: 'the URL or address that is proved' }),
  challenge: Hash,
  signature: Type.String({ pattern: '^0x[0-9a-f]{130}$' }),
});
export type NodeProofView = Static<typeof NodeProofView>;
