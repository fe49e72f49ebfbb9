import type { Api, Example, Examples, Operation } from '@skerry/protocol/api/operation';

/** A table whose operations have the examples that stand beside it. */
export const withExamples = (api: Api, examples: Examples): Api =>
  Object.fromEntries(
    Object.entries(api).map(([id, operation]) => {
      const example = examples[id] ?? operation.example;
      return [id, example ? { ...operation, example } : operation];
    }),
  );

/** The path and query of an example. */
export function addressOf({ path }: Operation, { params = {}, query = {} }: Example): string {
  const filled = path
    .replace(/:([A-Za-z_]+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
    .replace(/\*$/, () => String(params['*'] ?? ''));
  const asked = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return asked.length === 0 ? filled : `${filled}?${new URLSearchParams(asked)}`;
}
