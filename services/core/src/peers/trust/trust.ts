import type { Logger } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { Pipeline } from '../../intake/pipeline/pipeline.ts';
import { decideCreditAgain, enforceCredit } from '../../state/credits/derive.ts';
import type { ReadContentFile } from '../../store/content-reader.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';
import type { PeerTrust } from './ask.ts';
import {
  decideTrust,
  type Held,
  isSameValue,
  type Told,
  TRUST_LISTS,
  TRUST_NAMES,
  type TrustList,
  type TrustName,
  type TrustValue,
  type TrustVerdict,
  type TrustView,
  UNSET,
  viewOfTrust,
} from './decide.ts';
import { readTrust, type TrustRow, writeDerived, writePlace, writeTrust } from './store.ts';
import { countStored, hasStored, prepareReading, readStored } from './stored.ts';

/** What the node's own settings say, by name; what is left out may be learned from peers. */
export type GivenTrust = Partial<Readonly<Record<TrustName, TrustValue>>>;

export interface TrustOptions {
  readonly db: Kysely<Schema>;
  readonly given: GivenTrust;
  /** How many peers can be asked. */
  readonly peers: number;
  /** Whether this process decides for all on the database from the start; so where left out. */
  readonly leads?: boolean;
  /** Milliseconds of a clock that never goes back. */
  readonly uptime?: () => number;
  readonly log: Logger;
}

export interface DerivingTools {
  readonly pipeline: Pick<Pipeline, 'derive' | 'resume'>;
  readonly readContentFile: ReadContentFile;
}

/** How long a node that knows no list yet waits for most of its peers to answer, before those that do decide. */
export const FIRST_ANSWERS_MS = 600_000;
/** What a start takes, of this node and of peers that start with it: until then the log need not have it that they do not answer yet. */
const START_MS = 60_000;
/** A line of the log for so many messages. */
const TELL_EVERY = 5_000;

/** What verdicts of credit follow from beside messages: at once, where effects of messages are derived again one after another. */
const CREDIT_RULES: readonly TrustName[] = ['credit_enforcement', 'credit_publishers'];

/** Whose word is another one than it was. */
const changedBetween = (before: TrustValue, now: TrustValue) => [
  ...before.filter((one) => !now.includes(one)),
  ...now.filter((one) => !before.includes(one)),
];

/**
 * Whom this node trusts: by its settings, else by what its peers do. Everything that holds one of the sets sees a change
 * at once; what is stored already is derived again by `derive`, a few messages at a time, and goes on where it was after
 * a crash.
 */
export class Trust {
  readonly #options: TrustOptions;
  readonly #rows: Map<TrustName, TrustRow>;
  readonly #sets = Object.fromEntries(TRUST_LISTS.map((name) => [name, new Set<string>()])) as Readonly<
    Record<TrustList, Set<string>>
  >;
  readonly #problems = new Map<TrustName, string>();
  /** The problems that the log has. */
  readonly #logged = new Map<TrustName, string>();
  #hasHeard = false;
  readonly #uptime: () => number;
  readonly #openedMs: number;
  #deriving: { readonly name: TrustName; readonly total: number; done: number } | undefined;

  private constructor(options: TrustOptions, rows: Map<TrustName, TrustRow>) {
    this.#options = options;
    this.#uptime = options.uptime ?? (() => performance.now());
    this.#openedMs = this.#uptime();
    this.#rows = rows;
    for (const name of TRUST_NAMES) this.#fill(name);
  }

  /** Where this process does not lead, what is decided stays, and its own settings count for what nobody has decided yet. */
  static async open(options: TrustOptions): Promise<Trust> {
    const { db, given, leads = true, log } = options;
    const trust = new Trust(options, await readTrust(db));
    if (leads) {
      await trust.insist();
      return trust;
    }
    const isDecided = (name: TrustName) => trust.#rows.has(name);
    for (const name of TRUST_NAMES.filter(isDecided))
      if (given[name] && !isSameValue(given[name], trust.#held(name).value))
        log.warn(
          { trust: name, addresses: trust.#held(name).value },
          'the settings of this process differ from what the node trusts; those of the process that leads count',
        );
    await trust.#decide(
      TRUST_NAMES.filter((name) => !isDecided(name)),
      [],
      () => {},
    );
    return trust;
  }

  /** What the settings of this process say counts from now on, for all on the database; what peers told last does until they are asked again. */
  async insist(): Promise<void> {
    await this.#decide(TRUST_NAMES, [], () => {});
  }

  /** The same set for as long as the process runs, whatever is in it. */
  setOf(name: TrustList): ReadonlySet<string> {
    return this.#sets[name];
  }

  get isCreditEnforced(): boolean {
    return this.#held('credit_enforcement').value.length > 0;
  }

  /** Whether peers have to be asked at all. */
  get isAsking(): boolean {
    return TRUST_NAMES.some((name) => this.#options.given[name] === undefined);
  }

  view(): TrustView {
    return viewOfTrust((name) => this.#held(name));
  }

  /** What a person should know of; undefined while all is well. */
  problem(): string | undefined {
    // Where nothing depends on a list, as at a first start, a change of it makes no answer wrong.
    if (this.#deriving && this.#deriving.total > 0) {
      const { name, done, total } = this.#deriving;
      return `${name} changed: deriving the affected state again (${done} of ${total} messages)`;
    }
    const [first] = this.#problems;
    return first && sentenceOfProblem(...first);
  }

  /** Takes in what those peers said that answered, and adopts what follows from it. */
  async hear(told: readonly PeerTrust[]): Promise<void> {
    this.#hasHeard ||= told.length > 0;
    const isStarting = this.#uptime() - this.#openedMs < START_MS;
    await this.#decide(TRUST_NAMES, told, (name, { problem, isWaiting = false }) => {
      if (problem === undefined) {
        this.#problems.delete(name);
        this.#logged.delete(name);
        return;
      }
      this.#problems.set(name, problem);
      if ((isWaiting && isStarting) || this.#logged.get(name) === problem) return;
      this.#logged.set(name, problem);
      this.#options.log.warn({ trust: name }, sentenceOfProblem(name, problem));
    });
  }

  /** Takes over what another process on the database has decided. */
  async follow(): Promise<void> {
    for (const [name, row] of await readTrust(this.#options.db)) {
      this.#rows.set(name, row);
      this.#fill(name);
    }
  }

  async #decide(
    names: readonly TrustName[],
    told: readonly PeerTrust[],
    onVerdict: (name: TrustName, verdict: TrustVerdict) => void,
  ): Promise<void> {
    const { peers } = this.#options;
    for (const name of names) {
      const verdict = decideTrust({
        given: this.#options.given[name],
        held: this.#rows.get(name),
        told: told.flatMap((one): Told[] => {
          const said = one[name];
          return said ? [said] : [];
        }),
        peers,
        hasHeard: this.#hasHeard,
        hasWaited: this.#uptime() - this.#openedMs >= FIRST_ANSWERS_MS,
        isUnion: name === 'known_core_nodes',
      });
      onVerdict(name, verdict);
      await this.#adopt(name, verdict.held);
    }
  }

  /** Makes what is stored that of those who are trusted now. Resolves when nothing is left, or the signal ends. */
  async derive(tools: DerivingTools, signal?: AbortSignal): Promise<void> {
    for (const name of TRUST_NAMES) {
      if (!hasStored(name)) continue;
      while (!signal?.aborted && !this.#isDerived(name)) await this.#deriveOne(name, tools, signal);
    }
    tools.pipeline.resume();
  }

  #held(name: TrustName): Held {
    return this.#rows.get(name) ?? UNSET;
  }

  #isDerived(name: TrustName): boolean {
    const { value, derived } = this.#rows.get(name)!;
    return derived !== null && isSameValue(value, derived);
  }

  #fill(name: TrustName): void {
    if (name === 'credit_enforcement') return;
    const set = this.#sets[name];
    set.clear();
    for (const address of this.#held(name).value) set.add(address);
  }

  async #adopt(name: TrustName, held: Held): Promise<void> {
    const { db, log } = this.#options;
    const before = this.#rows.get(name);
    const isSame = before && isSameValue(before.value, held.value);
    if (isSame && before.source === held.source && isSameValue(before.toldBy, held.toldBy)) return;
    // A derivation that was under way has mixed two lists.
    const isMixed = this.#deriving?.name === name || before?.place !== null;
    const derived = isSame || !isMixed ? before!.derived : null;
    const row: TrustRow = { ...held, derived, place: isSame ? before.place : null };
    await db.transaction().execute(async (trx) => {
      // A batch that is being decided by the rules before is seen whole, and no two wait for each other's rows of the line.
      if (CREDIT_RULES.includes(name)) await lockWrites(trx);
      await writeTrust(trx, name, row);
      if (isSame) await writePlace(trx, name, row.place, held.value);
      if (name === 'credit_enforcement') await enforceCredit(trx, held.value.length > 0);
      if (name === 'credit_publishers' && !isSame) await decideCreditAgain(trx);
    });
    this.#rows.set(name, row);
    this.#fill(name);
    if (held.source === 'peers' || (before !== undefined && !isSame))
      log.warn({ trust: name, addresses: held.value, peers: held.toldBy }, sentenceOf(held));
  }

  async #deriveOne(name: TrustName, tools: DerivingTools, signal: AbortSignal | undefined): Promise<void> {
    const { db, log } = this.#options;
    const { value, derived, place } = this.#rows.get(name)!;
    const changed = derived === null ? null : changedBetween(derived, value);
    const { total, done } = await countStored(db, name, changed, place);
    this.#deriving = { name, total, done };
    if (total > 0)
      log.info({ trust: name, messages: total }, 'deriving the state again that depends on a changed list');
    try {
      for (;;) {
        const row = this.#rows.get(name)!;
        // Another change came in between: begin anew.
        if (signal?.aborted || !isSameValue(row.value, value)) return;
        const { rows, next } = await readStored(db, name, changed, row.place);
        // Where nothing is found need not be kept: whoever looks there again does as little.
        if (rows.length > 0 || !next) {
          const read = await prepareReading(rows, tools.readContentFile);
          await tools.pipeline.derive(read, (trx) =>
            next ? writePlace(trx, name, next, value) : writeDerived(trx, name, value),
          );
        }
        const now = this.#rows.get(name)!;
        if (!isSameValue(now.value, value)) return;
        this.#rows.set(name, next ? { ...now, place: next } : { ...now, derived: value, place: null });
        this.#tell(rows.length);
        if (!next) return;
      }
    } finally {
      this.#deriving = undefined;
    }
  }

  #tell(count: number): void {
    const deriving = this.#deriving!;
    const before = Math.floor(deriving.done / TELL_EVERY);
    deriving.done += count;
    if (Math.floor(deriving.done / TELL_EVERY) > before)
      this.#options.log.info({ ...deriving }, 'derived again');
  }
}

const sentenceOfProblem = (name: TrustName, problem: string) =>
  `${name}: ${problem}; set SKERRY_CORE_${name.toUpperCase()}`;

const sentenceOf = ({ source, value }: Held) =>
  source === 'peers'
    ? 'this node trusts whom its peers trust, because its settings are empty'
    : value.length === 0
      ? 'this node no longer trusts anyone for this'
      : "this node's trusted addresses changed";
