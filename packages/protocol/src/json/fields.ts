export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a value of which nothing is known yet: none where it is no object. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};
