/** Random values: what is asked for, as it was typed. */

export interface DrawRequest {
  readonly seed: string;
  readonly min?: number;
  readonly max?: number;
  readonly count?: number;
}

/** A number that was left out is the core node's choice; one that is none is left for it to refuse. */
export function drawOf({ seed = '', ...rest }: Readonly<Record<string, string | undefined>>): DrawRequest {
  const numbers = (['min', 'max', 'count'] as const).flatMap((name) => {
    const typed = rest[name]?.trim();
    return typed ? [[name, Number(typed)] as const] : [];
  });
  return { seed, ...Object.fromEntries(numbers) };
}
