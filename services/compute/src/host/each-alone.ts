/**
 * Does something with each of several, one after the other: that it fails with one, as on a damaged part of the disk, keeps none of the
 * others from its turn. Throws what failed first when all had theirs.
 */
export async function eachAlone<T>(items: Iterable<T>, work: (item: T) => Promise<unknown>): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) await work(item).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}
