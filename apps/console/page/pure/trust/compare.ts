/** Two values of the same kind, part by part, as both would be written down. */
export interface ComparedLine {
  /** `measurements.record_count` */
  readonly name: string;
  /** As JSON; null: there is none on this side. */
  readonly published: string | null;
  readonly computed: string | null;
  readonly isEqual: boolean;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function partsOf(value: unknown, name: string, into: Map<string, string>): void {
  if (!isObject(value)) {
    if (value !== undefined) into.set(name, JSON.stringify(value));
    return;
  }
  for (const [key, one] of Object.entries(value)) partsOf(one, name === '' ? key : `${name}.${key}`, into);
}

export function compareLines(published: unknown, computed: unknown): ComparedLine[] {
  const [theirs, ours] = [new Map<string, string>(), new Map<string, string>()];
  partsOf(published, '', theirs);
  partsOf(computed, '', ours);
  return [...new Set([...theirs.keys(), ...ours.keys()])].map((name) => {
    const [one, other] = [theirs.get(name) ?? null, ours.get(name) ?? null];
    return { name, published: one, computed: other, isEqual: one === other };
  });
}
