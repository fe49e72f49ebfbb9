import { creditsOf } from '@skerry/protocol';
import type { AccountView, HistoryView } from '@skerry/protocol/api/core/credits';
import { type Account, holdOf, runsOutAt } from '../../state/credits/accounts.ts';
import type { HistoryRow } from '../../state/credits/history.ts';

export function accountView(account: Account, at: number): AccountView {
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

const textOf = (value: unknown) => (typeof value === 'string' ? value : null);
const numberOf = (value: unknown) => (typeof value === 'number' ? value : null);

export function historyView(row: HistoryRow): HistoryView {
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
    origin: textOf(line.origin),
    expiration_date: null,
    expense_count: numberOf(line.count),
    expense_size_mib: numberOf(line.size),
    origin_ref: row.ref,
    credit_ref: row.item_hash,
    credit_index: row.place,
    start_date: numberOf(terms.start_date),
    end_date: numberOf(terms.end_date),
    message_timestamp: Math.floor(row.time),
  };
}
