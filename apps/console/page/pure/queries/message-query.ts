/** What the reader filters messages by, as the address has it: each may be left out. */
export type MessageFilter = Readonly<Record<string, string>>;

/** The API's name of each, by the name in the address. */
const NAMES = {
  type: 'msgTypes',
  channel: 'channels',
  sender: 'addresses',
  content: 'contentTypes',
  names: 'refs',
  chain: 'chains',
  owner: 'owners',
  status: 'msgStatuses',
  file: 'contentHashes',
  key: 'contentKeys',
  tag: 'tags',
  payment: 'paymentTypes',
  fromBlock: 'startBlock',
  toBlock: 'endBlock',
  page: 'page',
} as const;

const LIVE = ['type', 'channel', 'sender', 'page'];
/** What the live list does not filter by. */
export const LISTED_ALONE: readonly string[] = [
  ...Object.keys(NAMES).filter((name) => !LIVE.includes(name)),
  ...['from', 'to'],
];

/** Unix seconds of a moment as a field of a form has it: `2026-01-02T03:04`. Undefined where it is none. */
function secondsOf(written: string | undefined, zone: 'local' | 'utc'): number | undefined {
  if (!written) return undefined;
  const ms = Date.parse(zone === 'utc' ? `${written}Z` : written);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000);
}

/** The question for a list of messages. @param zone what times are written in */
export function messageQuery(filter: MessageFilter, zone: 'local' | 'utc'): Record<string, string> {
  const named = Object.entries(NAMES).flatMap(([name, asked]) =>
    filter[name] ? [[asked, filter[name]]] : [],
  );
  const [from, to] = [secondsOf(filter.from, zone), secondsOf(filter.to, zone)];
  return {
    ...Object.fromEntries(named),
    ...(from === undefined ? {} : { startDate: String(from) }),
    ...(to === undefined ? {} : { endDate: String(to) }),
  };
}
