import { timeOf } from './measure/queries.ts';

/** What a process of readers is told to look up. */
export interface Lookups {
  readonly urls: readonly string[];
  /** At the same time; each asks again as soon as it is answered. */
  readonly readers: number;
  /** So often each is looked up in a row: what disturbs the machine seldom disturbs all of them. */
  readonly sames: number;
}

async function ask(url: string): Promise<void> {
  const response = await fetch(url);
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`the lookup answered ${response.status}`);
}

process.once('message', async ({ urls, readers, sames }: Lookups) => {
  const timesMs: number[][] = [];
  await Promise.all(
    Array.from({ length: readers }, async (_, reader) => {
      for (let index = reader; index < urls.length; index += readers) {
        const times: number[] = [];
        for (let same = 0; same < sames; same++) times.push(await timeOf(() => ask(urls[index]!)));
        timesMs.push(times);
      }
    }),
  );
  process.send!(timesMs);
});
process.on('disconnect', () => process.exit(0));
