import { Archive } from './backup.ts';
import { Cluster } from './cluster.ts';
import { observe, writeEnd } from './observe.ts';
import { say } from './say.ts';

/**
 * Plays a scenario on three servers that are in step, and ends this process. Where the scenario fails, the logs say how everything stood
 * then, before any of it is ended.
 */
export async function playOn(
  directory: string,
  isSynchronous: boolean,
  play: (cluster: Cluster, stack: AsyncDisposableStack, archive: Archive) => Promise<void>,
): Promise<never> {
  await using stack = new AsyncDisposableStack();
  const cluster = new Cluster(directory, isSynchronous);
  const watching = new AbortController();
  const watched = observe(directory, cluster, watching.signal);
  try {
    await cluster.open();
    say('three servers are in step');
    const archive = new Archive(directory, cluster);
    await archive.open();
    say('their archive is set up');
    await play(cluster, stack, archive);
  } catch (error) {
    say(`failed: ${(error as Error).message}`);
    await writeEnd(directory, cluster);
    throw error;
  } finally {
    watching.abort();
    await watched;
  }
  await stack.disposeAsync();
  process.exit(0);
}
