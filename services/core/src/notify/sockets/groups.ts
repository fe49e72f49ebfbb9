import { type Anchor, type Matcher, matcherOf, type Row } from '../../state/lists/matcher.ts';
import type { MessageFilter, PropertyName } from '../../state/lists/properties.ts';
import type { Form } from './form.ts';

/** Those who asked for the same. */
export interface Group<Member> {
  readonly key: string;
  readonly form: Form;
  readonly matcher: Matcher;
  /** Where the group is found by a value that its messages have; those without are asked of every message. */
  readonly anchor: Anchor | undefined;
  readonly members: Set<Member>;
}

type ByValue<Member> = Map<unknown, Set<Group<Member>>>;

const keyOf = (filter: MessageFilter, form: Form) =>
  JSON.stringify([
    form,
    Object.entries(filter)
      .map(([name, value]) => [name, Array.isArray(value) ? value.toSorted() : value])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  ]);

/**
 * Groups by what they asked for. A message is compared with few of them: each is found by one of the properties of its
 * filter, the one whose values the fewest others are found by.
 */
export class Groups<Member> {
  readonly #groups = new Map<string, Group<Member>>();
  readonly #anchored = new Map<string, ByValue<Member>>();
  readonly #others = new Set<Group<Member>>();
  /** With the number of groups that need them. */
  readonly #made = new Map<PropertyName, number>();

  get size(): number {
    return this.#groups.size;
  }

  /** The properties that rows are to be read with. */
  get made(): readonly PropertyName[] {
    return [...this.#made.keys()];
  }

  /** @param form in which the messages are wanted */
  add(filter: MessageFilter, form: Form, member: Member): Group<Member> {
    const key = keyOf(filter, form);
    const group = this.#groups.get(key) ?? this.#make(key, filter, form);
    group.members.add(member);
    return group;
  }

  remove(group: Group<Member>, member: Member): void {
    group.members.delete(member);
    if (group.members.size > 0 || this.#groups.get(group.key) !== group) return;
    this.#groups.delete(group.key);
    this.#others.delete(group);
    this.#need(group, -1);
    const { anchor } = group;
    const byValue = anchor && this.#anchored.get(anchor.column);
    for (const value of anchor?.values ?? []) {
      const found = byValue!.get(value)!;
      found.delete(group);
      if (found.size === 0) byValue!.delete(value);
    }
    if (byValue?.size === 0) this.#anchored.delete(anchor!.column);
  }

  /** The groups that a message fits. */
  fitting(row: Row): Set<Group<Member>> {
    const fitting = new Set<Group<Member>>();
    const look = (group: Group<Member>) => {
      if (group.matcher.fits(row)) fitting.add(group);
    };
    for (const group of this.#others) look(group);
    for (const [column, byValue] of this.#anchored) {
      const held = row[column];
      for (const value of Array.isArray(held) ? held : [held]) byValue.get(value)?.forEach(look);
    }
    return fitting;
  }

  #make(key: string, filter: MessageFilter, form: Form): Group<Member> {
    const matcher = matcherOf(filter);
    const [anchor] = matcher.anchors
      .map((one) => ({ one, crowd: this.#crowdOf(one) }))
      .sort((a, b) => a.crowd - b.crowd)
      .map(({ one }) => one);
    const group = { key, form, matcher, anchor, members: new Set<Member>() };
    this.#groups.set(key, group);
    this.#need(group, 1);
    if (!anchor) {
      this.#others.add(group);
      return group;
    }
    const byValue: ByValue<Member> = this.#anchored.get(anchor.column) ?? new Map();
    this.#anchored.set(anchor.column, byValue);
    for (const value of anchor.values) {
      const found = byValue.get(value);
      if (found) found.add(group);
      else byValue.set(value, new Set([group]));
    }
    return group;
  }

  #need({ matcher }: Group<Member>, step: 1 | -1): void {
    for (const name of matcher.made) {
      const count = (this.#made.get(name) ?? 0) + step;
      if (count > 0) this.#made.set(name, count);
      else this.#made.delete(name);
    }
  }

  /** How many groups at most are found by one of the values already. */
  #crowdOf({ column, values }: Anchor): number {
    const byValue = this.#anchored.get(column);
    return Math.max(0, ...values.map((value) => byValue?.get(value)?.size ?? 0));
  }
}
