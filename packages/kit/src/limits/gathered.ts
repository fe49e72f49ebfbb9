export interface GatheredOptions {
  /** Questions under way at a time. */
  readonly atOnce: number;
  /** Keys in one question. */
  readonly keysMax: number;
}

/**
 * Asks for many keys in one question: whoever comes while `atOnce` of them are under way waits for the next, which takes all that
 * wait. Nobody waits where few ask, and a crowd costs little more than one.
 * @param ask what it throws is told to all whose keys were in the question
 * @returns asks for one key; undefined where no answer has it
 */
export function gathered<T>(
  ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>,
  { atOnce, keysMax }: GatheredOptions,
): (key: string) => Promise<T | undefined> {
  const waiting = new Map<string, PromiseWithResolvers<T | undefined>>();
  let underWay = 0;
  const askNext = async (): Promise<void> => {
    const asked: (readonly [string, PromiseWithResolvers<T | undefined>])[] = [];
    for (const entry of waiting) {
      if (asked.length === keysMax) break;
      asked.push(entry);
      waiting.delete(entry[0]);
    }
    underWay++;
    try {
      const found = await ask(asked.map(([key]) => key));
      for (const [key, { resolve }] of asked) resolve(found.get(key));
    } catch (error) {
      for (const [, { reject }] of asked) reject(error);
    } finally {
      underWay--;
      if (waiting.size > 0) void askNext();
    }
  };
  return (key) => {
    const answer = waiting.get(key) ?? Promise.withResolvers<T | undefined>();
    waiting.set(key, answer);
    if (underWay < atOnce) void askNext();
    return answer.promise;
  };
}
