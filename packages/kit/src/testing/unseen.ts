/** JSON Schema, as far as it is read here. */
interface Schema {
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

const alternativesOf = (schema: Schema): readonly Schema[] =>
  schema.anyOf?.flatMap(alternativesOf) ?? [schema];

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Fields that an example shows, that the schema names, and that no answer of a service had where it might have had them. Of what
 * stands in a list that was always empty, or below null, nothing is known; names that the schema leaves open are data.
 * @param answered what the service answered to several requests
 */
export function listUnseen(
  schema: object,
  shown: unknown,
  answered: readonly unknown[],
  at = 'answer',
): string[] {
  const forms = alternativesOf(schema);
  if (Array.isArray(shown)) {
    const items = forms.flatMap((form) => form.items ?? []);
    const found = answered.flatMap((one) => (Array.isArray(one) ? one : []));
    return shown.flatMap((one) => listUnseen({ anyOf: items }, one, found, `${at}[]`));
  }
  const objects = answered.filter(isObject);
  if (!isObject(shown) || objects.length === 0) return [];
  return Object.entries(shown).flatMap(([name, value]) => {
    const named = forms.flatMap(({ properties }) => properties?.[name] ?? []);
    if (named.length > 0) {
      const having = objects.filter((one) => Object.hasOwn(one, name));
      if (having.length === 0) return [`${at}.${name}`];
      const values = having.map((one) => one[name]);
      return listUnseen({ anyOf: named }, value, values, `${at}.${name}`);
    }
    const open = forms.flatMap(({ patternProperties = {} }) => Object.values(patternProperties));
    return listUnseen({ anyOf: open }, value, objects.flatMap(Object.values), `${at}.*`);
  });
}
