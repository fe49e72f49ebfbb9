import {
  anything,
  fields,
  flag,
  list,
  maybe,
  number,
  type Read,
  type Reader,
  record,
  rows,
  text,
  Unreadable,
} from '../pure/read.ts';

/** The forms of what the views ask that are loaded when they are looked at. */

/** A whole number of any size, as digits. */
const digits: Reader<bigint> = (value, at) => {
  if (typeof value === 'string' && /^-?[0-9]{1,60}$/.test(value)) return BigInt(value);
  throw new Unreadable(`${at} is not a whole number in digits`);
};

export const readDraw = fields({
  seed: text,
  min: number,
  max: number,
  count: number,
  value: number,
  values: list(number),
  proof: text,
  public_key: text,
});

const account = fields({
  address: text,
  credit_balance_nano: digits,
  credit_rate_nano: digits,
  credit_hold: number,
  credit_available: number,
  credit_state: maybe(text),
  credit_state_since: maybe(number),
  runs_out_at: maybe(number),
  time: number,
});
export type Account = Read<typeof account>;
export const readAccount = account;
export const readAccounts = fields({ accounts: rows(account) });

const historyLine = fields({
  amount_nano: digits,
  kind: text,
  origin_ref: text,
  credit_ref: text,
  credit_index: number,
  start_date: maybe(number),
  end_date: maybe(number),
  message_timestamp: number,
});
export type HistoryLine = Read<typeof historyLine>;
export const readHistory = fields({
  credit_history: rows(historyLine),
  pagination: fields({ total: number }),
});

const cost = fields({
  item_hash: text,
  type: text,
  compute_units: number,
  size_mib: number,
  cost_credit_nano: digits,
  consumed_credits: number,
  consumed_credits_nano: maybe(digits),
  created: number,
});
export type Cost = Read<typeof cost>;

const NANO = 1_000_000_000n;

/** What something has cost so far, in billionths of a credit; a node of an earlier release tells whole credits alone. */
export const usedOf = ({ consumed_credits_nano: nano, consumed_credits: used }: Cost): bigint =>
  nano ?? BigInt(Math.trunc(used)) * NANO;

export const readCosts = fields({
  summary: fields({ resource_count: number }),
  resources: maybe(rows(cost)),
});

const price = fields({ compute_unit: digits, storage_mib: digits, since: number });
export const readPrices = fields({
  prices: fields({ instance: maybe(price), program: maybe(price), storage: maybe(price) }),
});

const purchase = fields({
  id: text,
  chain: text,
  status: text,
  created_at: number,
  in_currency: text,
  prices: fields({ credit_amount: number }),
  tx_hash: text,
  item_hash: maybe(text),
  reason: maybe(text),
});
export type Purchase = Read<typeof purchase>;
export const readPurchases = fields({ data: rows(purchase) });

const freshness = {
  head: maybe(number),
  finalized: maybe(number),
  indexed: maybe(number),
  lag: maybe(number),
  state: text,
};
const indexedNetwork = {
  network: text,
  chain_id: number,
  ...freshness,
  halt: maybe(fields({ code: text, message: text })),
  progress_at: number,
  calls: number,
};
const indexed = fields(indexedNetwork);
export type IndexedNetwork = Read<typeof indexed>;
export const readIndexedNetworks = fields({ networks: rows(indexed) });
export type IndexedNetworks = Read<typeof readIndexedNetworks>;

const coverage = fields({
  contract: text,
  kind: text,
  from_block: number,
  to_block: maybe(number),
  live: flag,
});
export type Coverage = Read<typeof coverage>;
const endpoint = fields({
  name: text,
  requests: number,
  calls: number,
  failures: record(number),
  head: maybe(number),
  range_blocks: number,
  concurrency: number,
  resting: flag,
});
export type Endpoint = Read<typeof endpoint>;
export const readIndexedNetwork = fields({
  ...indexedNetwork,
  contracts: rows(coverage),
  endpoints: rows(endpoint),
});

const chainList = {
  pagination: fields({ total: number, total_is_exact: flag }),
  cursor: maybe(text),
  coverage: rows(coverage),
  ...freshness,
};
const chainEvent = fields({
  transaction_hash: text,
  block_number: number,
  log_index: number,
  contract: text,
  event_name: text,
  args: record(anything),
  timestamp: number,
});
export type ChainEvent = Read<typeof chainEvent>;
export const readChainEvents = fields({ events: rows(chainEvent), ...chainList });
const chainTransaction = fields({
  hash: text,
  block_number: number,
  from: text,
  to: maybe(text),
  value: text,
  timestamp: number,
});
export type ChainTransaction = Read<typeof chainTransaction>;
export const readChainTransactions = fields({ transactions: rows(chainTransaction), ...chainList });

export const readGateway = fields({
  instance_count: number,
  route_count: number,
  last_sync_time: number,
  domain: text,
  http_port: maybe(number),
  https_port: maybe(number),
});

const namedRoute = fields({
  instance_hash: text,
  subdomain: text,
  ipv6: maybe(text),
  active: flag,
  shared_by: number,
});
export type NamedRoute = Read<typeof namedRoute>;
export const readNamedRoutes = fields({
  routes: rows(namedRoute),
  total: number,
  next_position: maybe(number),
});

const collision = fields({
  subdomain: text,
  holder: text,
  waiting: list(fields({ instance_hash: text, because: text })),
});
export type Collision = Read<typeof collision>;
export const readCollisions = fields({ collisions: rows(collision), total: number });

/** A node that nobody measured has none: the answer is a refusal then. */
export const readMeasuredHistory = fields({
  from: maybe(number),
  history: maybe(
    list(
      fields({
        start: number,
        measurements: number,
        answered: number,
        versions: list(text),
      }),
    ),
  ),
});

export const readUptimeDays = rows(fields({ date: text, hits: number, failures: number }));

export const readPeers = fields({
  messages: number,
  behind: number,
  peers: rows(
    fields({
      name: text,
      address: maybe(text),
      state: text,
      messages: maybe(number),
      taken: number,
      given: number,
      synced_ms: maybe(number),
      failure: maybe(text),
    }),
  ),
});
export type Peers = Read<typeof readPeers>;
