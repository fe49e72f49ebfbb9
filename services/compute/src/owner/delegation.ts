const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/**
 * Whether an owner's `authorizations` let an address operate what the owner's messages of a type ask for: an entry with the
 * address, whose lists of types allow this one and whose other lists restrict nothing. An entry that is not understood
 * permits nothing. Pure.
 * @param sender lower case
 */
export function mayOperate(
  authorizations: unknown,
  sender: string,
  type: 'INSTANCE' | 'PROGRAM' = 'INSTANCE',
): boolean {
  if (!Array.isArray(authorizations)) return false;
  return authorizations.some((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return false;
    const { address, types, channels, chain } = entry as Record<string, unknown>;
    if (typeof address !== 'string' || address.toLowerCase() !== sender) return false;
    if (chain != null && chain !== 'ETH') return false;
    const isOpen = (list: unknown) => list == null || (isTexts(list) && list.length === 0);
    return isOpen(channels) && (isOpen(types) || (isTexts(types) && types.includes(type)));
  });
}
