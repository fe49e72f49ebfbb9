import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What is let go of between two collections; a collection takes about a millisecond. */
const EVERY_BYTES = 12 * 1024 * 1024;

/** V8's `gc`, which is only in contexts that are made while its flag is on. */
function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}

/**
 * Tells of bytes that came in chunks and are done with. Node gives each piece of a body memory of its own outside of the
 * JavaScript heap. V8 lets that grow by some 30 MiB and then collects the whole heap, although what was let go of is all
 * young: so the young part is collected before it comes to that.
 */
export function createYoungCollector(): (bytes: number) => void {
  let collect: (() => void) | undefined;
  let letGo = 0;
  return (bytes) => {
    letGo += bytes;
    if (letGo < EVERY_BYTES) return;
    letGo = 0;
    collect ??= findCollector();
    collect();
  };
}
