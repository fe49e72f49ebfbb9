/** What is asked of an indexed chain, as the address of the page has it. */
const EVENT_FIELDS = ['contract', 'event_name', 'args', 'from_block', 'to_block', 'cursor'] as const;
const ROWS = '20';

/** The query of the route of events, or of the one of transactions, which knows addresses and no arguments. */
export function chainQueryOf(query: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const isEvents = query.what !== 'transactions';
  const given = EVENT_FIELDS.flatMap((name) => {
    const value = query[name]?.trim();
    if (!value || (!isEvents && (name === 'event_name' || name === 'args'))) return [];
    return [[!isEvents && name === 'contract' ? 'address' : name, value] as const];
  });
  return { ...Object.fromEntries(given), limit: ROWS };
}
