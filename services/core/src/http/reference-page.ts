import { createHash } from 'node:crypto';
import { escapeHtml } from '@skerry/kit';
import type { Document, Operation } from './document.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #0a6c8a; }
@media (prefers-color-scheme: dark) { :root { --accent: #6cc7e0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 2.5rem 0 .5rem; font-size: 1.2rem; }
nav a { margin-right: .8rem; } a { color: var(--accent); }
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
const prose = (text: string) => escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>');

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly description?: string;
  readonly format?: string;
}

const NESTING_MAX = 8;

/** A schema as people write types: `{ name: string, ports?: integer[] }`. */
function typeText(schema: Schema, indent = ''): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.anyOf) return schema.anyOf.map((one) => typeText(one, indent)).join(' | ');
  if (schema.items) return `${typeText(schema.items, indent)}[]`;
  if (schema.properties && indent.length < NESTING_MAX * 2) {
    const lines = Object.entries(schema.properties).map(([name, one]) => {
      const mark = schema.required?.includes(name) ? '' : '?';
      const note = one.description === undefined ? '' : `  // ${one.description}`;
      return `${indent}  ${name}${mark}: ${typeText(one, `${indent}  `)}${note}`;
    });
    return `{\n${lines.join('\n')}\n${indent}}`;
  }
  return schema.format === 'binary' ? 'bytes' : [schema.type ?? 'any'].flat().join(' | ');
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

const renderContent = (content: Content = {}) =>
  Object.entries(content)
    .map(
      ([type, { schema }]) =>
        `<p><code>${escapeHtml(type)}</code></p><pre>${escapeHtml(typeText(schema ?? {}))}</pre>`,
    )
    .join('');

function renderParameters({ parameters = [] }: Operation): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: place, required, description = '', schema }) => {
    const fallback = schema?.default === undefined ? '' : `, ${JSON.stringify(schema.default)} when left out`;
    const kind = `${place}, ${typeText((schema ?? {}) as Schema)}${required ? '' : ', optional'}${fallback}`;
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(kind)}</td><td>${prose(description)}</td></tr>`;
  });
  return `<h3>Parameters</h3><table>${rows.join('')}</table>`;
}

const isError = (content: unknown) =>
  JSON.stringify(content ?? {}).includes('#/components/schemas/ErrorBody');

/** One row of a table for each code that an operation may answer. */
function errorRowsOf({ responses }: Operation): string[] {
  const refusals = Object.entries(responses).filter(([, one]) => isError(one.content));
  return refusals.flatMap(([status, { description }]) =>
    description.split(/\. (?=[A-Z_]+: )/).map((sentence) => {
      const [code = '', meaning = ''] = sentence.split(/: (.*)/s);
      return `<tr><td>${escapeHtml(status)}</td><td><code>${escapeHtml(code)}</code></td><td>${escapeHtml(meaning)}</td></tr>`;
    }),
  );
}

/** What every operation may answer is told once. */
function commonRowsOf(operations: readonly Operation[]): ReadonlySet<string> {
  const [first, ...others] = operations.map((operation) => new Set(errorRowsOf(operation)));
  return new Set([...(first ?? [])].filter((row) => others.every((rows) => rows.has(row))));
}

function renderResponses(operation: Operation, common: ReadonlySet<string>): string {
  const answers = Object.entries(operation.responses)
    .filter(([, one]) => !isError(one.content))
    .map(
      ([status, one]) =>
        `<h3>${escapeHtml(status)} ${escapeHtml(one.description)}</h3>${renderContent(one.content as Content)}`,
    );
  const own = errorRowsOf(operation).filter((row) => !common.has(row));
  const errors = own.length === 0 ? '' : `<h3>Errors</h3><table>${own.join('')}</table>`;
  return `${answers.join('')}${errors}`;
}

interface Place {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function renderOperation({ method, path, operation }: Place, common: ReadonlySet<string>): string {
  const { summary = '', operationId, requestBody } = operation;
  const rate = operation['x-rate-limit'];
  const limit = rate?.per_minute ? `${rate.class}, ${rate.per_minute} a minute` : 'not limited';
  const body = requestBody as { content?: Content } | undefined;
  return `<details id="${escapeHtml(operationId)}"><summary><span class="method">${escapeHtml(method.toUpperCase())}</span><code>${escapeHtml(path)}</code><span>${escapeHtml(summary)}</span></summary>
<div class="body"><p class="notes">${escapeHtml(operationId)} · rate: ${escapeHtml(limit)}${operation['x-signed'] ? ' · signed by the caller' : ''}</p>
${renderParameters(operation)}${body ? `<h3>Body</h3>${renderContent(body.content)}` : ''}${renderResponses(operation, common)}</div></details>`;
}

/** The document as one page that needs nothing else: readable offline and without scripts. */
export function renderReference(document: Document): string {
  const operations: Place[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const common = commonRowsOf(operations.map(({ operation }) => operation));
  const groups = Map.groupBy(operations, ({ operation }) => operation.tags?.[0] ?? 'node');
  const links = [...groups.keys()]
    .map((tag) => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`)
    .join('');
  const sections = [...groups].map(
    ([tag, some]) =>
      `<h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${some.map((one) => renderOperation(one, common)).join('\n')}`,
  );
  const { title, version, description = '' } = document.info;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)} <small>${escapeHtml(version)}</small></h1>
${description
  .split('\n')
  .map((line) => `<p>${prose(line)}</p>`)
  .join('')}
<p>${operations.length} operations. For programs: <a href="openapi.json">openapi.json</a>.</p><nav>${links}</nav>
${common.size === 0 ? '' : `<h2>errors of every operation</h2><table>${[...common].join('')}</table>`}
${sections.join('\n')}</body></html>
`;
}
