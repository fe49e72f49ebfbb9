import type { Example, Operation } from '@skerry/protocol/api/operation';

/** The path and query of an example. */
export function addressOf({ path }: Operation, { params = {}, query = {} }: Example): string {
  const filled = path
    .replace(/:([A-Za-z_]+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
    .replace(/\*$/, () => String(params['*'] ?? ''));
  const asked = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return asked.length === 0 ? filled : `${filled}?${new URLSearchParams(asked)}`;
}
