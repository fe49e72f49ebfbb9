import { type InstanceState, type InstanceView, instanceViewOf } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { readProvable } from '../messages/shared.ts';

/** The messages that an instance follows from: its own, and those that say the last word on a part of it. */
const sourcesOf = ({ instanceId, stamps }: InstanceState): string[] => [
  ...new Set([instanceId, ...Object.values(stamps).flatMap((stamp) => (stamp ? [stamp[1]] : []))]),
];

type Provable = InstanceView & { readonly shared?: (string | null)[] };

/** Instances as they are shown. @param isProvable with what proves them */
export async function instanceViewsOf(
  db: Kysely<Schema>,
  states: readonly InstanceState[],
  isProvable: boolean,
): Promise<Provable[]> {
  if (!isProvable) return states.map(instanceViewOf);
  const texts = await readProvable(db, [...new Set(states.flatMap(sourcesOf))]);
  return states.map((state) => ({
    ...instanceViewOf(state),
    shared: sourcesOf(state).map((hash) => texts.get(hash) ?? null),
  }));
}

/** The same of one. What is too long to be told with it can be read by its hash; lists, of which digests are computed, have no hashes. */
export async function instanceViewOfOne(
  db: Kysely<Schema>,
  state: InstanceState,
  isProvable: boolean,
): Promise<Provable & { readonly sources?: string[] }> {
  const [view] = await instanceViewsOf(db, [state], isProvable);
  return isProvable ? { ...view!, sources: sourcesOf(state) } : view!;
}
