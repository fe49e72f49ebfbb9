/** What one of several nodes answered to the same question. */
export interface Answered {
  readonly url: string;
  /** Null where it did not answer. */
  readonly said: string | null;
  /** Why it did not. */
  readonly why: string | null;
}

/** What several nodes say, beside what the first of them says. */
export interface Agreement {
  /** `alone`: no other node answered. */
  readonly kind: 'alone' | 'agree' | 'differ';
  readonly same: readonly Answered[];
  readonly others: readonly Answered[];
  readonly silent: readonly Answered[];
}

/** @param answers that of the node whose word is looked at first */
export function agreementOf(answers: readonly Answered[]): Agreement {
  const [own, ...rest] = answers;
  const silent = rest.filter(({ said }) => said === null);
  const told = rest.filter(({ said }) => said !== null);
  const same = told.filter(({ said }) => said === own?.said);
  const others = told.filter(({ said }) => said !== own?.said);
  const kind = told.length === 0 || own?.said === null ? 'alone' : others.length === 0 ? 'agree' : 'differ';
  return { kind, same, others, silent };
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
