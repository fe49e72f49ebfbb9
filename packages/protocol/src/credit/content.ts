import { normaliseAddress } from '../content/on-behalf.ts';
import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { ANY_HASH_PATTERN } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';

/**
 * Credit on the network: POST messages of these types on the channel `net-credit`. By anybody whom a core node does not
 * trust with credit they are kept like any other POST and change nothing.
 */
export const CREDIT_POST = {
  distribution: 'net-credit-distribution',
  expense: 'net-credit-expense',
  notice: 'net-credit-notice',
} as const;
export const CREDIT_CHANNEL = 'net-credit';

/** Lines in one message: a content of that many stays inline. */
export const CREDIT_LINES_MAX = 500;

const strict = { additionalProperties: false } as const;
const Address = Type.String({ minLength: 1, maxLength: LIMITS.addressChars });
const Credits = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Label = Type.String({ minLength: 1, maxLength: LIMITS.refChars });
const Digits = (maxChars: number) => Type.String({ pattern: `^[0-9]{1,${maxChars}}$` });
const UnixSeconds = Type.Integer({ minimum: 0, maximum: 9_223_372_036 });

const CreditLine = Type.Object(
  {
    address: Address,
    amount: Type.Integer({ ...Credits, description: 'whole credits, bonus included' }),
    bonus_amount: Type.Optional(Count),
    token_amount: Type.Optional(Digits(78)),
    price: Type.Optional(
      Type.String({ maxLength: 64, description: 'credits for one token, bonus left out' }),
    ),
    tx_hash: Type.Optional(Type.String({ pattern: '^0x[0-9a-f]{64}$' })),
    log_index: Type.Optional(Count),
    ref: Type.Optional(Label),
    provider: Type.Optional(Label),
    payment_method: Type.Optional(Label),
  },
  strict,
);

/** What was bought or given. A line names a transfer (`tx_hash`, `log_index`) or a note of the publisher (`ref`). */
const Distribution = Type.Object(
  {
    token: Type.Optional(Label),
    chain: Type.Optional(Label),
    chain_id: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    contract: Type.Optional(Address),
    credits: Type.Array(CreditLine, { minItems: 1, maxItems: CREDIT_LINES_MAX }),
  },
  strict,
);
export type CreditDistribution = Static<typeof Distribution>;

const ExpenseLine = Type.Object(
  { address: Address, ref: Type.String({ pattern: ANY_HASH_PATTERN }), nanocredits: Digits(30) },
  strict,
);

/** What was used in a period, [start_date, end_date) in Unix seconds. */
const Expense = Type.Object(
  {
    start_date: UnixSeconds,
    end_date: UnixSeconds,
    credits: Type.Array(ExpenseLine, { minItems: 1, maxItems: CREDIT_LINES_MAX }),
  },
  strict,
);
export type CreditExpense = Static<typeof Expense>;

export const CREDIT_STATES = ['ok', 'low', 'exhausted'] as const;
export type CreditState = (typeof CREDIT_STATES)[number];

/** How an owner's credit stands. `low` comes before anything is stopped, `exhausted` when it is. */
const Notice = Type.Object(
  {
    address: Address,
    state: Type.Unsafe<CreditState>(Type.Enum([...CREDIT_STATES])),
    credits: Type.Integer({
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'whole credits that are left',
    }),
    runs_out_at: Type.Union([UnixSeconds, Type.Null()], {
      description: 'at the present cost; null where nothing costs anything',
    }),
  },
  strict,
);
export type CreditNotice = Static<typeof Notice>;

const parseDistributionShape = createParser(
  Type.Object(
    { distribution: Distribution, tags: Type.Optional(Type.Array(Label, { maxItems: 64 })) },
    strict,
  ),
  'content.content',
);
const parseExpenseShape = createParser(
  Type.Object({ expense: Expense, tags: Type.Optional(Type.Array(Label, { maxItems: 64 })) }, strict),
  'content.content',
);
const parseNoticeShape = createParser(Type.Object({ notice: Notice }, strict), 'content.content');

const expect = (condition: boolean, sentence: string) => {
  if (!condition) throw new AppError('INVALID_CONTENT', sentence);
};

/** @throws AppError INVALID_CONTENT, UNKNOWN_FIELD */
export function parseDistribution(value: unknown): CreditDistribution {
  const { distribution } = parseDistributionShape(value);
  for (const line of distribution.credits) {
    const isTransfer = line.tx_hash !== undefined && line.log_index !== undefined;
    const isGrant = line.ref !== undefined && line.tx_hash === undefined && line.log_index === undefined;
    expect(
      isTransfer || isGrant,
      'a line of credits names a transfer by tx_hash and log_index, or has a ref',
    );
    expect(
      !isTransfer || distribution.chain_id !== undefined,
      'credits for transfers need distribution.chain_id',
    );
    expect((line.bonus_amount ?? 0) <= line.amount, 'bonus_amount is a part of amount');
  }
  const credits = distribution.credits.map((line) => ({ ...line, address: normaliseAddress(line.address) }));
  return { ...distribution, credits };
}

/** @throws AppError INVALID_CONTENT, UNKNOWN_FIELD */
export function parseExpense(value: unknown): CreditExpense {
  const { expense } = parseExpenseShape(value);
  expect(expense.start_date < expense.end_date, 'expense.end_date comes after expense.start_date');
  const credits = expense.credits.map((line) => ({ ...line, address: normaliseAddress(line.address) }));
  return { ...expense, credits };
}

/** @throws AppError INVALID_CONTENT, UNKNOWN_FIELD */
export function parseNotice(value: unknown): CreditNotice {
  const { notice } = parseNoticeShape(value);
  return { ...notice, address: normaliseAddress(notice.address) };
}
