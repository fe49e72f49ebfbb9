import { pause } from '@skerry/kit';

/** Until all have settled, or for a while after the first of them `isEnough`: one that hangs must not hold up the others. */
export async function settleSome(
  looks: readonly Promise<void>[],
  graceMs: number,
  isEnough: () => boolean,
): Promise<void> {
  const all = Promise.all(looks);
  const enough = Promise.withResolvers<void>();
  for (const look of looks) look.then(() => isEnough() && enough.resolve()).catch(() => {});
  await Promise.race([all, enough.promise]);
  const stop = new AbortController();
  await Promise.race([all, pause(graceMs, stop.signal)]);
  stop.abort();
}
