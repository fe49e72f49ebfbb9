/** What comes of it, unless the signal ends first: then its reason is thrown, and nobody waits any longer. */
export async function unless<T>(signal: AbortSignal, coming: Promise<T>): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => reject(signal.reason);
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([coming, ended]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** The same chunks, unless the signal ends first: then its reason is thrown, also where the next chunk never comes. */
export async function* chunksUnless<T>(signal: AbortSignal, chunks: AsyncIterable<T>): AsyncGenerator<T> {
  const source = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await unless(signal, source.next());
      if (done) return;
      yield value;
    }
  } finally {
    // Not waited for: it ends once its last chunk has come, or has failed.
    source.return?.().catch(() => {});
  }
}
