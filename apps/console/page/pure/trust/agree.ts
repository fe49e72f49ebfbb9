/** What one of several nodes answered to the same question. */
export interface Answered {
  readonly url: string;
  /** Null where it did not answer. */
  readonly said: string | null;
  /** Why it did not. */
  readonly why: string | null;
}

/**
 * What is known of who answers at a URL: the address of the key that answered there just now, `unproven` where none did, and
 * `refuted` where it is not the node that it is said to be, or one that was counted already.
 */
export type Answerer = { readonly key: string } | 'unproven' | 'refuted';

/** What several nodes say, beside what the first of them says. */
export interface Agreement {
  /** `alone`: fewer than two nodes whose keys are proven say it. */
  readonly kind: 'alone' | 'agree' | 'differ';
  /** Nodes that say it, each proven to have a key of its own. */
  readonly nodes: number;
  /** Those that say it, too, but may be nodes that are counted already. */
  readonly uncounted: readonly Answered[];
  /** Those that say something else. One that is not the node that it is said to be says nothing of it. */
  readonly others: readonly Answered[];
  readonly silent: readonly Answered[];
}

/** Whether any that answered says something else than the first one. */
export const isDisputed = (answers: readonly Answered[]): boolean =>
  answers.some(({ said }) => said !== null && said !== answers[0]!.said);

/**
 * Nodes are counted by their keys: one that answers at several URLs is one.
 * @param answers that of the node whose word is looked at first
 * @param answererAt who answered, by its place among the answers
 */
export function agreementOf(answers: readonly Answered[], answererAt: (at: number) => Answerer): Agreement {
  const own = answers[0]?.said ?? null;
  const heard = answers.map((answer, at) => ({ answer, at, by: answererAt(at) }));
  const told = heard.filter(({ answer, by }) => answer.said !== null && by !== 'refuted');
  const same = told.filter(({ answer }) => answer.said === own);
  const others = told.filter(({ answer }) => answer.said !== own);
  const keys = same.flatMap(({ by }) => (typeof by === 'string' ? [] : [by.key]));
  const nodes = own === null ? 0 : new Set(keys).size;
  const kind = own === null ? 'alone' : others.length > 0 ? 'differ' : nodes > 1 ? 'agree' : 'alone';
  const plain = (heard: readonly { readonly answer: Answered }[]) => heard.map(({ answer }) => answer);
  return {
    ...{ kind, nodes, others: plain(others) },
    uncounted: plain(same.filter(({ at, by }) => at > 0 && by === 'unproven')),
    silent: plain(heard.filter(({ answer, at }) => at > 0 && answer.said === null)),
  };
}

const HTTP = /^https?:\/\//;

/** Whether two addresses on the web are of one server. */
export const sameOrigin = (one: string, other: string) =>
  URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;

/** The origins of nodes, each once and not the first one again, as many as are wanted. */
export function otherNodes(own: string, urls: readonly string[], most: number): string[] {
  const found = new Set<string>();
  for (const url of urls) {
    if (!HTTP.test(url) || !URL.canParse(url)) continue;
    const { origin } = new URL(url);
    if (origin !== new URL(own).origin) found.add(origin);
  }
  return [...found].slice(0, most);
}

const ENTRY = /^\S{1,200}$/;
const ENTRIES_MAX = 50;

/** A list that somebody typed: entries between spaces, commas or lines, each once. Undefined: it is not one. */
export function readList(typed: string): string[] | undefined {
  const entries = [...new Set(typed.split(/[\s,]+/).filter((one) => one !== ''))];
  return entries.length <= ENTRIES_MAX && entries.every((one) => ENTRY.test(one)) ? entries : undefined;
}
