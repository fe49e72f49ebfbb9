import { readScoreRows } from '@skerry/protocol/scoring/score-rows';
import {
  anything,
  fields,
  flag,
  list,
  maybe,
  number,
  oneOf,
  type Read,
  type Reader,
  record,
  rows,
  text,
} from '../pure/read.ts';

/** The forms of what is asked, as far as it is shown (docs/openapi*.json). */

const reason = fields({ code: text, message: text });

const check = fields({ status: text, reason: maybe(text), since_ms: maybe(number) });
export const readHealth = fields({
  status: text,
  reason: maybe(text),
  since_ms: maybe(number),
  version: text,
  checks: record(check),
});
export type Health = Read<typeof readHealth>;

const trusted = fields({ value: list(text), source: text });
export const readInfo = fields({
  name: text,
  version: text,
  address: text,
  trust: fields({
    schedulers: trusted,
    scoring_publishers: trusted,
    credit_publishers: trusted,
    credit_enforcement: fields({ value: flag }),
  }),
  services: maybe(
    fields({ gateway: maybe(text), scheduler: maybe(text), credit: maybe(text), status: maybe(text) }),
  ),
});
export type Info = Read<typeof readInfo>;

export const readMetrics = fields({
  pyaleph_status_sync_messages_total: maybe(number),
  pyaleph_status_sync_pending_messages_total: maybe(number),
  pyaleph_status_peers_total: maybe(number),
  pyaleph_status_chain_eth_last_committed_height: maybe(number),
  pyaleph_status_chain_eth_height_remaining_total: maybe(number),
});

/** Where the log of events is. */
export const readCursor = fields({ next_cursor: text });

const resources = fields({ cpu: number, memory_mib: number, disk_gib: number });
export type Resources = Read<typeof resources>;
const schedulerNode = fields({
  node_id: text,
  url: maybe(text),
  ipv6: maybe(text),
  address: text,
  version: text,
  features: list(text),
  capacity: resources,
  limits: resources,
  used: resources,
  free: resources,
  instances: number,
  healthy: flag,
  reason: maybe(reason),
  leaving: maybe(reason),
  wrong_since_ms: maybe(number),
  trust: text,
  score: maybe(number),
  weight: number,
  announced_at: number,
});
export type SchedulerNode = Read<typeof schedulerNode>;
export const readSchedulerNodes = fields({ nodes: rows(schedulerNode) });

export const readSchedulerStatus = fields({
  status: text,
  reasons: list(text),
  /** Of schedulers before it: the reasons alone. */
  problems: maybe(rows(fields({ message: text, since_ms: number }))),
  instances: fields({ total: number, placed: number, waiting: number, leaving: number }),
});
export type SchedulerStatus = Read<typeof readSchedulerStatus>;

const service = fields({
  id: number,
  name: text,
  group_id: number,
  permalink: text,
  online: flag,
  online_24_hours: number,
  online_7_days: number,
  latency: number,
  last_success: maybe(text),
  last_error: maybe(text),
  issue: maybe(text),
});
export type Service = Read<typeof service>;
export const readServices = rows(service);

const instance = fields({
  instance_id: text,
  owner: text,
  name: text,
  description: text,
  cpu: number,
  memory: number,
  disk: number,
  image: text,
  firewall: fields({
    allowedPorts: list(number),
    allowedUdpPorts: maybe(list(number)),
    proxyProtocol: maybe(flag),
  }),
  ipv6: text,
  status: text,
  created_at: number,
  updated_at: number,
  desired: text,
  node_id: maybe(text),
  node_address: maybe(text),
  phase: text,
  reason: maybe(reason),
});
export type Instance = Read<typeof instance>;
export const readInstance = instance;
/** With all that it follows from. */
export const readProvableInstance: Reader<Instance & { readonly whole: unknown }> = (value, at) => ({
  ...instance(value, at),
  whole: value,
});
export const readProvableInstances = fields({
  instances: rows(readProvableInstance),
  pagination: fields({ total: number }),
});
export const readInstances = fields({
  instances: rows(instance),
  pagination: fields({ total: number }),
  cursor: text,
});

export type {
  ReadComputeScore as ComputeScore,
  ReadScore as CoreScore,
} from '@skerry/protocol/scoring/score-rows';

/** What its publisher signed is the last that it says of nodes, also where it is in another form: then it says nothing. */
const signedScores = (value: unknown) => {
  const { measured_at, settings, scores } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return { measured_at, settings, scores: readScoreRows(scores) };
};

const scoresMessage = fields({
  item_hash: text,
  sender: text,
  time: number,
  content: fields({ content: signedScores }),
});
export type ScoresMessage = Read<typeof scoresMessage>;
export const readScoresMessages = fields({ messages: rows(scoresMessage) });

export const readMeasurements = fields({ metrics: rows(record(anything)) });

const confirmation = fields({ chain: text, height: number, hash: text });
const listed = {
  item_hash: text,
  type: text,
  chain: text,
  sender: text,
  signature: text,
  time: number,
  channel: maybe(text),
};
const messageHeader = fields({ ...listed, shared: maybe(text) });
export type MessageHeader = Read<typeof messageHeader>;
export const readMessageHeaders = fields({ messages: rows(messageHeader), pagination_total: maybe(number) });

/** With all that a signature is checked by. */
const wholeMessage = fields({
  ...listed,
  item_type: maybe(oneOf('inline', 'storage', 'ipfs')),
  item_content: maybe(text),
  content: anything,
  shared: maybe(text),
});
export type WholeMessage = Read<typeof wholeMessage>;
export const readWholeMessages = fields({ messages: rows(wholeMessage) });

export const readMessage = fields({
  item_hash: text,
  type: text,
  chain: text,
  sender: text,
  channel: maybe(text),
  timestamp: number,
  content: anything,
  status: text,
  reception_time: maybe(text),
  reason: maybe(reason),
  confirmations: list(confirmation),
  forgotten_by: maybe(list(text)),
});
export type Message = Read<typeof readMessage>;

export const readWhy = fields({
  hostname: text,
  ipv6: maybe(text),
  chain: list(fields({ step: text, ok: maybe(flag), detail: text })),
  missing: maybe(reason),
  http3: maybe(fields({ ok: maybe(flag), detail: text })),
});
export type Why = Read<typeof readWhy>;

export const readExplanation = fields({
  verdict: reason,
  decisions: list(fields({ decided_at: text, kind: text, node_id: maybe(text), reason: maybe(reason) })),
  nodes: record(number),
  candidates: list(
    fields({
      node_id: text,
      has_room: flag,
      weight: number,
      free_share: number,
      score: maybe(number),
      against: maybe(reason),
    }),
  ),
});
export type Explanation = Read<typeof readExplanation>;
