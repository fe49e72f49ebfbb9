import type { Tally } from './tally.ts';
import type { Sample } from './watch.ts';

const round = (value: number) => (value < 10 ? value.toFixed(1) : String(Math.round(value)));

/** What a run showed, as the tables of docs/security.md. */
export function renderRun(tally: Tally, samples: readonly Sample[]): string {
  const quiet = new Map(tally.honestRows('quiet').map((row) => [row.who, row]));
  const honest = tally.honestRows('hostile').map(({ who, tried, taken, p50, p99 }) => {
    const before = quiet.get(who);
    const was = before === undefined ? '' : `${round(before.p50)} / ${round(before.p99)}`;
    return `| ${who} | ${tried} | ${tried - taken} | ${was} | ${round(p50)} / ${round(p99)} |`;
  });
  const hostile = tally
    .hostileRows()
    .map(({ who, tried, taken, refusals }) => `| ${who} | ${tried} | ${taken} | ${refusals} |`);
  const measured = samples.map(
    ({ atMs, memoryMib, logBytes }) =>
      `| ${Math.round((atMs - samples[0]!.atMs) / 1000)} | ${memoryMib} | ${Math.round(logBytes / 1024)} |`,
  );
  return [
    '',
    '| honest user | requests | refused or wrong | p50 / p99 before, ms | p50 / p99 beside strangers, ms |',
    '|---|---|---|---|---|',
    ...honest,
    '',
    '| stranger | tries | taken | refused |',
    '|---|---|---|---|',
    ...hostile,
    '',
    '| second | memory of the network, MiB | logs, KiB |',
    '|---|---|---|',
    ...measured,
    '',
  ].join('\n');
}
