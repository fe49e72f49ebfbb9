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
  /** Questions that nobody has asked yet; the last one takes more keys. */
  const waiting: Map<string, PromiseWithResolvers<T | undefined>>[] = [];
  let underWay = 0;
  const askNext = async (): Promise<void> => {
    const question = waiting.shift()!;
    underWay++;
    try {
      const found = await ask([...question.keys()]);
      for (const [key, { resolve }] of question) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of question.values()) reject(error);
    } finally {
      underWay--;
      if (waiting.length > 0) void askNext();
    }
  };
  // Each question has a map of its own. One that all pass through is made anew now and then, and V8 lets the old one point to the new:
  // once a collection takes one for old, it keeps each that follows, with all that was asked and answered.
  const begin = () => {
    const question: (typeof waiting)[number] = new Map();
    waiting.push(question);
    return question;
  };
  return (key) => {
    const question = waiting.find((one) => one.has(key) || one.size < keysMax) ?? begin();
    const answer = question.get(key) ?? Promise.withResolvers<T | undefined>();
    question.set(key, answer);
    if (underWay < atOnce) void askNext();
    return answer.promise;
  };
}
