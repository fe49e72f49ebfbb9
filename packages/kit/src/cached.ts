/**
 * A value that is made at most once in `ttlMs`, however many ask: those who come while it is being made share the making.
 * A failure is told to those who wait for it and not kept.
 */
export function cached<T>(
  ttlMs: number,
  make: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let current: { readonly value: Promise<T>; readonly untilMs: number } | undefined;
  return () => {
    if (current && now() < current.untilMs) return current.value;
    const value = make();
    const entry = { value, untilMs: Number.POSITIVE_INFINITY };
    current = entry;
    value.then(
      () => {
        if (current === entry) current = { value, untilMs: now() + ttlMs };
      },
      () => {
        if (current === entry) current = undefined;
      },
    );
    return value;
  };
}

/** What it resolves to, or `late` after `timeoutMs`. What is late goes on by itself. */
export async function within<T, L>(timeoutMs: number, value: Promise<T>, late: L): Promise<T | L> {
  const { promise, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(() => resolve(late), timeoutMs);
  try {
    return await Promise.race([value, promise]);
  } finally {
    clearTimeout(timer);
    value.catch(() => {});
  }
}
