import assert from 'node:assert/strict';
import type { Difference } from '../haproxy/differences.ts';
import type { CreateDataPlane, RouteChange } from '../port.ts';
import type { World } from './suite/world.ts';

/**
 * A data plane under test, and what it is allowed to do unlike the others. Where a test asks `differs`, it expects exactly the
 * other thing: a difference that is not one any more fails.
 */
export class Subject {
  readonly create: CreateDataPlane;
  readonly #differences: ReadonlySet<Difference>;
  readonly #seen = new Set<Difference>();

  /** @param differences each with its reason in words */
  constructor(create: CreateDataPlane, differences: Readonly<Partial<Record<Difference, string>>> = {}) {
    this.create = create;
    this.#differences = new Set(Object.keys(differences) as Difference[]);
  }

  differs(difference: Difference): boolean {
    this.#seen.add(difference);
    return this.#differences.has(difference);
  }

  /** Changes routes, and waits until they count, where that takes a while. */
  async change(world: World, changes: readonly RouteChange[]): Promise<void> {
    world.plane.applyChanges(changes);
    if (this.differs('late_changes')) await world.plane.stats();
  }

  /** No test has a declared difference in mind that no test looks at. */
  checkAllSeen(): void {
    assert.deepEqual(
      [...this.#differences].filter((one) => !this.#seen.has(one)),
      [],
    );
  }
}
