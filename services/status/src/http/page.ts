import { createHash } from 'node:crypto';
import { escapeHtml } from '@skerry/kit';
import type { ServiceView } from '@skerry/protocol/api/status';
import type { Service } from '../history/store.ts';
import type { GROUPS } from '../registry.ts';
import { chooseFairly } from './fair.ts';
import { isHeard, isOnline } from './views.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --good: light-dark(#187a3c, #6ed494); --bad: light-dark(#b3261e, #ff8a80); }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 2rem 0 .3rem; font-size: 1.1rem; }
.sum { font-size: 1.2rem; margin: .5rem 0; } .good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td:first-child { min-width: 8rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
small { opacity: .75; }
`;

/** Nothing but this page's own style: no script, nothing from elsewhere. */
export const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const TITLES: Readonly<Record<keyof typeof GROUPS, string>> = {
  core: 'Core nodes',
  compute: 'Compute nodes',
  service: 'Services',
};
/** Rows of one table: who wants all of them asks the API. */
const ROWS_MAX = 500;
const REFRESH_SECONDS = 60;
const MICROSECONDS = 1_000;

const stateOf = ({ online, issue }: ServiceView) =>
  online
    ? '<span class="good">up</span>'
    : `<span class="bad">down</span> <small>${escapeHtml(issue ?? '')}</small>`;

const percentOf = (value: number) => `${value.toFixed(2)} %`;

function rowOf(service: ServiceView): string {
  const { name, online, latency, online_24_hours: day, online_7_days: week, stats } = service;
  const figures = [
    // One that does not answer took no time that could be told.
    online ? `${(latency / MICROSECONDS).toFixed(1)} ms` : '–',
    percentOf(day),
    percentOf(week),
    String(stats.hits),
  ];
  const cells = figures.map((text) => `<td class="number">${escapeHtml(text)}</td>`).join('');
  return `<tr><td>${escapeHtml(name)}</td><td>${stateOf(service)}</td>${cells}</tr>`;
}

type ViewsOf = (services: readonly Service[]) => readonly ServiceView[];

/** What is down comes first: with many nodes that is what a reader looks for. Strangers' silent nodes drive nothing off the page. */
const byNeed = (a: Service, b: Service) =>
  Number(isHeard(b)) - Number(isHeard(a)) || Number(isOnline(a)) - Number(isOnline(b)) || a.id - b.id;

function tableOf(title: string, services: readonly Service[], viewsOf: ViewsOf): string {
  if (services.length === 0) return '';
  const heads = ['Service', 'State'].map((text) => `<th scope="col">${text}</th>`).join('');
  const numbers = ['Answer', '24 hours', '7 days', 'Checks']
    .map((text) => `<th scope="col" class="number">${text}</th>`)
    .join('');
  const chosen = chooseFairly(services.toSorted(byNeed), ROWS_MAX, (one) => Number(!isHeard(one)));
  const rows = viewsOf(chosen.toSorted(byNeed));
  const more =
    services.length > rows.length ? `<p><small>and ${services.length - rows.length} more</small></p>` : '';
  return `<h2>${escapeHtml(title)}</h2>
<table><thead><tr>${heads}${numbers}</tr></thead><tbody>${rows.map(rowOf).join('\n')}</tbody></table>${more}`;
}

/** The state of the network as one page that needs nothing else: no script, and nothing from elsewhere. */
export function renderPage(services: readonly Service[], viewsOf: ViewsOf, nowMs: number): string {
  const heard = services.filter(isHeard);
  const down = heard.filter((service) => !isOnline(service)).length;
  const unheard = services.length - heard.length;
  const sum =
    heard.length === 0
      ? '<p class="sum">Nothing was checked yet.</p>'
      : down === 0
        ? `<p class="sum good">All ${heard.length} services answer.</p>`
        : `<p class="sum bad">${down} of ${heard.length} services do not answer.</p>`;
  const never = unheard === 0 ? '' : `<p><small>Announced, and never answered: ${unheard}.</small></p>`;
  const tables = (Object.keys(TITLES) as (keyof typeof TITLES)[]).map((group) =>
    tableOf(
      TITLES[group],
      services.filter(({ target }) => target.group === group),
      viewsOf,
    ),
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${REFRESH_SECONDS}"><title>Network status</title><style>${STYLE}</style></head>
<body><h1>Network status</h1>
${sum}${never}
${tables.join('\n')}
<p><small>${escapeHtml(new Date(nowMs).toISOString())}. For programs: <a href="/api/services">/api/services</a>, <a href="/api/v0/openapi.json">openapi.json</a>.</small></p>
</body></html>
`;
}
