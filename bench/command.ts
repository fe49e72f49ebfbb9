import { parseArgs } from 'node:util';

/** What stands behind `npm run bench --`, read. */
export interface Command {
  readonly name: string | undefined;
  /** What the bench itself understands. */
  readonly args: readonly string[];
  readonly json: boolean;
  readonly write: boolean;
  readonly busy: boolean;
  readonly help: boolean;
  readonly against: string | undefined;
  readonly pairs: number;
}

const OPTIONS = {
  json: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
  busy: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  against: { type: 'string' },
  pairs: { type: 'string', default: '2' },
} as const;
const PAIRS_MAX = 50;

/** What was asked for makes no sense; the message says what does. */
export class WrongUse extends Error {}

/**
 * Options of the command anywhere; the rest is the name of a bench and what it is told.
 * @throws WrongUse
 */
export function readCommand(given: readonly string[]): Command {
  const { tokens } = parseArgs({ args: [...given], options: OPTIONS, strict: false, tokens: true });
  const own = new Set<number>();
  for (const token of tokens) {
    if (token.kind !== 'option' || !Object.hasOwn(OPTIONS, token.name)) continue;
    own.add(token.index);
    if (token.value !== undefined && token.inlineValue === false) own.add(token.index + 1);
  }
  const [name, ...args] = given.filter((_, index) => !own.has(index));
  const { values } = parseArgs({ args: given.filter((_, index) => own.has(index)), options: OPTIONS });
  const pairs = Number(values.pairs);
  if (!Number.isInteger(pairs) || pairs < 1 || pairs > PAIRS_MAX)
    throw new WrongUse(`--pairs takes a number from 1 to ${PAIRS_MAX}, not ${values.pairs}`);
  if (values.against !== undefined && (values.write || name === undefined || name === 'all'))
    throw new WrongUse('--against takes one bench, and keeps no figures');
  if (values.write && name === undefined) throw new WrongUse('--write takes one bench');
  return { ...values, name, args, pairs, against: values.against };
}
