import assert from 'node:assert/strict';

/** How many there were of each thing, as a native program tells it: `NAME COUNT, NAME COUNT`. */
export const countsIn = (said: string): Readonly<Record<string, number>> =>
  Object.fromEntries([...said.matchAll(/([a-z_]+) (\d+)/g)].map(([, name, count]) => [name!, Number(count)]));

/**
 * There was at least one of each: a soak that never came to what it is about has shown nothing.
 * @throws AssertionError that names what there was none of
 */
export function assertEach(counts: Readonly<Record<string, number>>): void {
  const none = Object.keys(counts).filter((name) => !(counts[name]! > 0));
  assert.deepEqual(none, [], 'there was none of these, so nothing is shown of them');
  assert.ok(Object.keys(counts).length > 0, 'nothing was counted');
}
