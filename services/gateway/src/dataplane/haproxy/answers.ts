import { newTlsCounts, TLS_OUTCOMES, type TlsCounters, type TlsCounts } from '../figures.ts';
import { BACKENDS, RELAY_KEY } from './config-text.ts';

type Fields = ReadonlyMap<string, number | string>;

/** Entries of `show table`: a line each, of `name=value`. */
function readTable(text: string): Fields[] {
  const entries: Fields[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith('0x')) continue;
    const fields = line
      .split(' ')
      .slice(1)
      .map((field): [string, string] => {
        const at = field.indexOf('=');
        return [field.slice(0, at), field.slice(at + 1)];
      });
    entries.push(new Map(fields));
  }
  return entries;
}

const numberOf = (fields: Fields | undefined, name: string) => Number(fields?.get(name) ?? 0);

/** What HAProxy has counted of one name, in its table of names. Times are Unix seconds, 0 for never. */
export function readName(text: string) {
  const entry = readTable(text)[0];
  return {
    open: numberOf(entry, 'conn_cur'),
    connections: numberOf(entry, 'gpc0'),
    connectedAt: numberOf(entry, 'gpt0'),
    since: numberOf(entry, 'gpt1'),
    bytesToInstance: numberOf(entry, 'bytes_in_cnt'),
    bytesToClient: numberOf(entry, 'bytes_out_cnt'),
  };
}

/** Rows of `show stat`, comma-separated below a line of names. */
function readStat(text: string): Fields[] {
  const [head = '', ...lines] = text
    .replace(/^# /, '')
    .split('\n')
    .filter((line) => line !== '');
  const names = head.split(',');
  return lines.map((line) => new Map(line.split(',').map((value, index) => [names[index] ?? '', value])));
}

/**
 * What HAProxy has counted since it started, from `show stat` of frontends and backends, and from its table of outcomes.
 */
export function readCounts(stat: string, outcomes: string): TlsCounts {
  const counts = newTlsCounts();
  for (const row of readStat(stat)) {
    if (row.get('svname') === 'FRONTEND') counts.figures.open += numberOf(row, 'scur');
    if (row.get('svname') !== 'BACKEND') continue;
    if (row.get('pxname') !== BACKENDS.plain && row.get('pxname') !== BACKENDS.headers) continue;
    counts.figures.bytesToInstances += numberOf(row, 'bin');
    counts.figures.bytesToClients += numberOf(row, 'bout');
    counts.outcomes.connect_failed += numberOf(row, 'econ');
  }
  for (const entry of readTable(outcomes)) {
    const key = entry.get('key');
    if (key === RELAY_KEY) counts.outcomes.relayed = numberOf(entry, 'gpc0');
    else
      for (const outcome of TLS_OUTCOMES)
        if (outcome === key) counts.outcomes[outcome] = numberOf(entry, 'conn_cnt');
  }
  return counts;
}

/** The counts of several processes, one after the other. What is open is of the last. */
export function addCounts(before: TlsCounts, now: TlsCounts): TlsCounts {
  const sum: TlsCounters = newTlsCounts();
  for (const outcome of TLS_OUTCOMES)
    sum.outcomes[outcome] = before.outcomes[outcome] + now.outcomes[outcome];
  sum.figures.open = now.figures.open;
  sum.figures.bytesToInstances = before.figures.bytesToInstances + now.figures.bytesToInstances;
  sum.figures.bytesToClients = before.figures.bytesToClients + now.figures.bytesToClients;
  return sum;
}
