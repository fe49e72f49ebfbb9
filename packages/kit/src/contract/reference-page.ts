import { createHash } from 'node:crypto';
import { type Api, errorsOf, type Operation, statusOf } from '@skerry/protocol/api/operation';
import { ERRORS, type ErrorCode } from '@skerry/protocol/forms';
import { VERSION } from '../daemon/version.ts';
import { escapeHtml } from '../http/html.ts';
import {
  type ApiInfo,
  contentOfAnswer,
  contentOfBody,
  describeAnswer,
  methodsOf,
  type PerMinute,
  pathOf,
  tagOf,
} from './document.ts';
import { addressOf } from './example.ts';
import { shownParametersOf } from './parameters.ts';
import { commonErrors, listNamed, type Schema, typeText } from './type-text.ts';

export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: light-dark(#0a6c8a, #6cc7e0); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 2.5rem 0 .5rem; font-size: 1.2rem; }
nav a { margin-right: .8rem; }
@media (min-width: 88rem) { nav { position: fixed; top: 1.5rem; left: 1.5rem; width: 9.5rem; max-height: 94vh; overflow: auto; } nav a { display: block; } } a { color: var(--accent); }
code, pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { overflow-x: auto; margin: .3rem 0; padding: .6rem .8rem; background: var(--soft); border-radius: 6px; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; }
summary { cursor: pointer; display: flex; flex-wrap: wrap; gap: .2rem .8rem; padding: .5rem .8rem; align-items: baseline; }
summary code { font-size: 14px; overflow-wrap: anywhere; }
summary span { opacity: .75; }
.body { padding: 0 .8rem .8rem; border-top: 1px solid var(--line); }
.method { min-width: 3.2rem; font-weight: 700; color: var(--accent); }
table { border-collapse: collapse; width: 100%; margin: .3rem 0; }
td, th { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
h3 { margin: 1rem 0 .2rem; font-size: .95rem; }
.notes { opacity: .75; margin: .6rem 0 0; }
`;

/** Nothing but this page's own style: no script, nothing from elsewhere. */
export const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Sentences with `code` in them. */
export const prose = (text: string) => escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>');

const preformatted = (text: string) => `<pre>${escapeHtml(text)}</pre>`;

const renderContent = (content: Readonly<Record<string, object>>) =>
  Object.entries(content)
    .map(([type, schema]) => {
      const { title } = schema as Schema;
      const shown = title ?? typeText(schema as Schema);
      return `<p><code>${escapeHtml(type)}</code></p>${preformatted(shown)}`;
    })
    .join('');

function renderParameters(operation: Operation): string {
  const rows = shownParametersOf(operation).map(({ name, in: place, required, description = '', schema }) => {
    const fallback = schema.default === undefined ? '' : `, ${JSON.stringify(schema.default)} when left out`;
    const kind = `${place}, ${typeText(schema as Schema)}${required ? '' : ', optional'}${fallback}`;
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(kind)}</td><td>${prose(description)}</td></tr>`;
  });
  return rows.length === 0 ? '' : `<h3>Parameters</h3><table>${rows.join('')}</table>`;
}

const errorRow = (code: ErrorCode, operation?: Operation) =>
  `<tr><td>${statusOf(code, operation)}</td><td><code>${code}</code></td><td>${escapeHtml(ERRORS[code].meaning)}</td></tr>`;

function renderExample(operation: Operation): string {
  const { method, example } = operation;
  if (!example) return '';
  const { body, answer } = example;
  const sent = body === undefined ? '' : `\n${JSON.stringify(body, null, 2)}`;
  return `<h3>Example</h3>${preformatted(`${method} ${addressOf(operation, example)}${sent}`)}${preformatted(JSON.stringify(answer, null, 2))}`;
}

function renderOperation(
  id: string,
  operation: Operation,
  common: ReadonlySet<ErrorCode>,
  perMinute: PerMinute,
): string {
  const { summary, body, answers, rateClass = 'unlimited' } = operation;
  const count = perMinute[rateClass];
  const notes = [
    id,
    `rate: ${count === undefined ? 'not limited' : `${rateClass}, ${count} a minute`}`,
    ...(rateClass === 'authenticated' ? ['signed by the caller'] : []),
  ];
  const shown = Object.entries(answers).map(
    ([status, form]) =>
      `<h3>${status} ${escapeHtml(describeAnswer(status, form))}</h3>${renderContent(contentOfAnswer(form))}`,
  );
  const own = errorsOf(operation).filter((code) => !common.has(code));
  const errors =
    own.length === 0
      ? ''
      : `<h3>Errors</h3><table>${own.map((code) => errorRow(code, operation)).join('')}</table>`;
  return `<details id="${escapeHtml(id)}"><summary><span class="method">${methodsOf(operation).join(', ')}</span><code>${escapeHtml(pathOf(operation))}</code><span>${escapeHtml(summary)}</span></summary>
<div class="body"><p class="notes">${notes.map(escapeHtml).join(' · ')}</p>
${renderParameters(operation)}${body ? `<h3>Body</h3>${renderContent(contentOfBody(body))}` : ''}${shown.join('')}${renderExample(operation)}${errors}</div></details>`;
}

function renderTypes(operations: readonly Operation[]): string {
  const shown = listNamed(operations).map(
    ([title, schema]) =>
      `<details id="type-${escapeHtml(title)}"><summary><code>${escapeHtml(title)}</code></summary><div class="body">${preformatted(typeText(schema))}</div></details>`,
  );
  return shown.length === 0 ? '' : `<h2 id="types">types</h2>${shown.join('\n')}`;
}

/** A table as one page that needs nothing else: readable offline and without scripts. */
export function renderReference(
  api: Api,
  { title, description }: ApiInfo,
  perMinute: PerMinute = {},
): string {
  const operations = Object.entries(api);
  const all = operations.map(([, operation]) => operation);
  const common = commonErrors(all);
  const groups = Map.groupBy(operations, ([, operation]) => tagOf(operation));
  const types = renderTypes(all);
  const links = [...groups.keys(), ...(types === '' ? [] : ['types'])]
    .map((tag) => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`)
    .join('');
  const sections = [...groups].map(
    ([tag, some]) =>
      `<h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${some.map(([id, one]) => renderOperation(id, one, common, perMinute)).join('\n')}`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)} <small>${escapeHtml(VERSION)}</small></h1>
${description
  .split('\n')
  .map((line) => `<p>${prose(line)}</p>`)
  .join('')}
<p><a href="/">About this service</a>. ${operations.length} operations. For programs: <a href="openapi.json">openapi.json</a>.</p><nav>${links}</nav>
${common.size === 0 ? '' : `<h2>errors of every operation</h2><table>${[...common].map((code) => errorRow(code)).join('')}</table>`}
${sections.join('\n')}
${types}</body></html>
`;
}
