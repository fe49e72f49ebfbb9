import { CREDIT_STATES, creditsOf, formatDecimal, RESOURCE_KINDS } from '@skerry/protocol';
import Type from 'typebox';
import { type Account, type CostRow, type HistoryRow, holdOf, runsOutAt } from '../credits/read.ts';

const NANO_PLACES = 9;
/** How deployed clients read a cost: credits per second with so many decimals. */
const COST_PLACES = 18;

export const digits = (description: string) => Type.String({ pattern: '^-?[0-9]+$', description });
const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const time = (description: string) =>
  Type.Integer({ minimum: 0, maximum: 9_223_372_036, description });

export const AccountView = {
  address: Type.String(),
  credit_balance: Type.Integer({ description: 'whole credits, rounded towards less' }),
  credit_balance_nano: digits('billionths of a credit'),
  credit_rate_nano: digits('what everything of the owner costs, billionths of a credit per second'),
  credit_hold: Type.Integer({ description: 'whole credits that a day of it costs; kept back' }),
  credit_available: Type.Integer({ description: 'the balance without the hold' }),
  credit_state: orNull(Type.Enum([...CREDIT_STATES])),
  credit_state_since: orNull(Type.Integer({ description: 'Unix seconds' })),
  runs_out_at: orNull(Type.Integer({ description: 'Unix seconds, at the present rate' })),
  time: Type.Integer({ description: 'as of when, Unix seconds' }),
};

export function accountView(account: Account, at: number) {
  const balance = creditsOf(account.balance);
  const hold = holdOf(account);
  return {
    address: account.owner,
    credit_balance: Number(balance),
    credit_balance_nano: String(account.balance),
    credit_rate_nano: String(account.rate),
    credit_hold: Number(hold),
    credit_available: Number(balance - hold),
    credit_state: account.state,
    credit_state_since: account.stateSince === null ? null : Math.floor(account.stateSince),
    runs_out_at: runsOutAt(account, at),
    time: at,
  };
}

/** Deployed clients ask for tokens that are held, too: here everything is paid by credit. */
export const NO_TOKENS = { balance: 0, details: {}, locked_amount: 0, credit_balance_details: null };

export const HistoryView = Type.Object({
  amount: Type.Integer({ description: 'whole credits; below zero for what was used' }),
  amount_nano: digits('the same in billionths of a credit'),
  kind: Type.Enum(['purchase', 'expense']),
  bonus_amount: orNull(Type.Integer()),
  price: orNull(Type.String()),
  tx_hash: orNull(Type.String()),
  log_index: orNull(Type.Integer()),
  token: orNull(Type.String()),
  token_amount: orNull(Type.String()),
  chain: orNull(Type.String()),
  chain_id: orNull(Type.Integer()),
  provider: orNull(Type.String()),
  payment_method: orNull(Type.String()),
  origin_ref: Type.String({ description: 'the transaction, the note, or the resource' }),
  credit_ref: Type.String({ description: 'the message' }),
  credit_index: Type.Integer({ description: 'the place in it' }),
  start_date: orNull(Type.Integer()),
  end_date: orNull(Type.Integer()),
  message_timestamp: Type.Integer({ description: 'Unix seconds' }),
});

const textOf = (value: unknown) => (typeof value === 'string' ? value : null);
const numberOf = (value: unknown) => (typeof value === 'number' ? value : null);

export function historyView(row: HistoryRow) {
  const { terms, line } = row;
  return {
    amount: Number(creditsOf(BigInt(row.nano))),
    amount_nano: row.nano,
    kind: row.kind,
    bonus_amount: numberOf(line.bonus_amount),
    price: textOf(line.price),
    tx_hash: textOf(line.tx_hash),
    log_index: numberOf(line.log_index),
    token: textOf(terms.token),
    token_amount: textOf(line.token_amount),
    chain: textOf(terms.chain),
    chain_id: numberOf(terms.chain_id),
    provider: textOf(line.provider),
    payment_method: textOf(line.payment_method),
    origin_ref: row.ref,
    credit_ref: row.item_hash,
    credit_index: row.place,
    start_date: numberOf(terms.start_date),
    end_date: numberOf(terms.end_date),
    message_timestamp: Math.floor(row.time),
  };
}

export const CostView = Type.Object({
  item_hash: Type.String(),
  owner: Type.String(),
  type: Type.Enum([...RESOURCE_KINDS]),
  payment_type: Type.Literal('credit'),
  compute_units: Type.Integer(),
  size_mib: Type.Integer({ description: 'storage that no compute unit brings along' }),
  cost_hold: Type.String(),
  cost_stream: Type.String(),
  cost_credit: Type.String({ description: 'credits per second, 18 decimals' }),
  cost_credit_nano: digits('billionths of a credit per second'),
  consumed_credits: Type.Integer({ description: 'whole credits so far' }),
  created: Type.Integer({ description: 'Unix seconds' }),
});

export const decimals = (nano: bigint) => {
  const [whole, fraction = ''] = formatDecimal(nano, NANO_PLACES).split('.');
  return `${whole}.${fraction.padEnd(COST_PLACES, '0')}`;
};
export const ZERO = decimals(0n);

export const costView = (row: CostRow) => ({
  item_hash: row.item_hash,
  owner: row.owner,
  type: row.kind,
  payment_type: 'credit' as const,
  compute_units: row.units,
  size_mib: row.mib,
  cost_hold: ZERO,
  cost_stream: ZERO,
  cost_credit: decimals(BigInt(row.rate)),
  cost_credit_nano: row.rate,
  consumed_credits: Number(creditsOf(BigInt(row.used))),
  created: Math.floor(row.created),
});
