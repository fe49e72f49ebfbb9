import { ERRORS, type ErrorCode } from '@skerry/protocol';
import { errorsOf, type Operation, statusOf } from '@skerry/protocol/api/operation';
import {
  contentOfAnswer,
  contentOfBody,
  describeAnswer,
  methodsOf,
  pathOf,
  tagOf,
} from '../../packages/kit/src/contract/document.ts';
import { addressOf } from '../../packages/kit/src/contract/example.ts';
import { shownParametersOf } from '../../packages/kit/src/contract/parameters.ts';
import { commonErrors, listNamed, type Schema, typeText } from '../../packages/kit/src/contract/type-text.ts';
import { renderCall } from './client-call.ts';
import type { Contract, Source } from './contracts.ts';
import { cell, code, fence, type Page, prose } from './markdown.ts';

/** The reference of the HTTP interfaces, from the contracts: a page for each chapter of a service. Pure. */

/** A service with more operations has a page for each chapter. */
const ONE_PAGE_MAX = 20;

interface Chapter {
  readonly contract: Contract;
  readonly operations: readonly (readonly [id: string, operation: Operation])[];
  readonly sources: ReadonlyMap<Operation, Source>;
  readonly common: ReadonlySet<ErrorCode>;
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ''
    : [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

function renderParameters(operation: Operation): string {
  const rows = shownParametersOf(operation).map(({ name, in: place, required, description = '', schema }) => {
    const fallback = schema.default === undefined ? '' : `; ${JSON.stringify(schema.default)} if left out`;
    const type = typeText(schema as Schema).replaceAll('\n', ' ');
    const kind = `${place}, ${cell(code(type))}${required ? '' : ', optional'}${cell(fallback)}`;
    return [code(name), kind, cell(prose(description))];
  });
  return rows.length === 0 ? '' : `**Parameters**\n\n${table(['name', 'where and type', 'meaning'], rows)}`;
}

const renderContent = (content: Readonly<Record<string, object>>): string =>
  Object.entries(content)
    .map(([type, schema]) => {
      const { title } = schema as Schema;
      if (title !== undefined) return `${code(type)}: [${title}](#type-${title.toLowerCase()})`;
      return `${code(type)}:\n\n${fence('ts', typeText(schema as Schema))}`;
    })
    .join('\n\n');

const renderAnswers = ({ answers }: Operation): string =>
  Object.entries(answers)
    .map(
      ([status, form]) =>
        `**Answer ${status}**, ${prose(describeAnswer(status, form))}\n\n${renderContent(contentOfAnswer(form))}`,
    )
    .join('\n\n');

function renderExample(operation: Operation): string {
  const { method, example } = operation;
  if (!example) return '';
  const { body, answer } = example;
  const sent = body === undefined ? '' : `\n\n${JSON.stringify(body, null, 2)}`;
  const request = fence('http', `${method} ${addressOf(operation, example)}${sent}`);
  return `**Example**\n\n${request}\n\n${fence('json', JSON.stringify(answer, null, 2))}`;
}

function renderErrors(operation: Operation, common: ReadonlySet<ErrorCode>): string {
  const own = errorsOf(operation).filter((one) => !common.has(one));
  const rows = own.map((one) => [
    String(statusOf(one, operation)),
    code(one),
    cell(prose(ERRORS[one].meaning)),
  ]);
  return rows.length === 0 ? '' : `**Errors**\n\n${table(['status', 'code', 'meaning'], rows)}`;
}

const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function renderOperation(id: string, operation: Operation, { contract, sources, common }: Chapter): string {
  const { summary, body, rateClass = 'unlimited', deployed } = operation;
  const source = sources.get(operation);
  const example = contract.examples[id];
  const shown = example ? { ...operation, example } : operation;
  const facts = [
    `operation ${code(id)}`,
    ...(rateClass === 'unlimited' ? [] : [`counted as ${code(rateClass)}`]),
    ...(rateClass === 'authenticated' ? ['signed by the caller'] : []),
  ];
  const parts = [
    `## ${prose(summary)} {#${id.toLowerCase()}}`,
    `${code(`${methodsOf(operation).join(', ')} ${pathOf(operation)}`)}`,
    `${capitalised(facts.join(', '))}.`,
    source ? fence('ts', renderCall(shown, source)) : '',
    renderParameters(operation),
    body ? `**Body**\n\n${renderContent(contentOfBody(body))}` : '',
    renderAnswers(operation),
    renderErrors(operation, common),
    renderExample(shown),
    deployed?.differs === undefined ? '' : `Unlike on deployed nodes: ${prose(deployed.differs)}.`,
  ];
  return parts.filter(Boolean).join('\n\n');
}

const renderTypes = (operations: readonly Operation[]): string[] => {
  const named = listNamed(operations);
  if (named.length === 0) return [];
  const each = named.map(
    ([title, schema]) => `### ${title} {#type-${title.toLowerCase()}}\n\n${fence('ts', typeText(schema))}`,
  );
  return ['## Types {#types}', ...each];
};

const renderChapter = (chapter: Chapter): string[] => [
  ...chapter.operations.map(([id, operation]) => renderOperation(id, operation, chapter)),
  ...renderTypes(chapter.operations.map(([, operation]) => operation)),
];

const wordsOf = (tag: string) => tag.replaceAll(/[-_]/g, ' ');

const renderCommon = (common: ReadonlySet<ErrorCode>): string =>
  `Every operation may also answer ${[...common].map((one) => `${statusOf(one, undefined)} ${code(one)}`).join(', ')} ([errors](/errors)).`;

function headOf({ title, description, document }: Contract, common: ReadonlySet<ErrorCode>): string[] {
  return [
    `# ${title}: API`,
    ...description.split('\n').map(prose),
    `For programs: [${document}](/${document}). A node serves its own as \`/api/v0/openapi.json\`, and as a page at \`/api/v0/docs\`.`,
    renderCommon(common),
  ];
}

const listOperations = (page: string, operations: Chapter['operations']): string =>
  table(
    ['operation', 'request'],
    operations.map(([id, operation]) => [
      `[${cell(prose(operation.summary))}](${page}#${id.toLowerCase()})`,
      code(`${methodsOf(operation).join(', ')} ${pathOf(operation)}`),
    ]),
  );

/** The pages of a service, the first with all of its operations in a list. */
export function renderApi(contract: Contract, sources: ReadonlyMap<Operation, Source>): Page[] {
  const operations = Object.entries(contract.api);
  const common = commonErrors(operations.map(([, operation]) => operation));
  const top = `reference/${contract.name}`;
  const text = (parts: readonly string[]) => `${parts.join('\n\n')}\n`;
  if (operations.length <= ONE_PAGE_MAX) {
    const chapter = { contract, operations, sources, common };
    const parts = [...headOf(contract, common), ...renderChapter(chapter)];
    return [{ path: `${top}/index.md`, title: contract.title, text: text(parts) }];
  }
  const groups = [...Map.groupBy(operations, ([, operation]) => tagOf(operation))];
  const chapters = groups.map(([tag, some]): Page => {
    const parts = [
      `# ${contract.title}: ${wordsOf(tag)}`,
      renderCommon(common),
      ...renderChapter({ contract, operations: some, sources, common }),
    ];
    return { path: `${top}/${tag}.md`, title: wordsOf(tag), text: text(parts) };
  });
  const contents = groups.flatMap(([tag, some]) => [
    `## ${capitalised(wordsOf(tag))}`,
    listOperations(`/${top}/${tag}`, some),
  ]);
  const first = {
    path: `${top}/index.md`,
    title: contract.title,
    text: text([...headOf(contract, common), ...contents]),
  };
  return [first, ...chapters];
}
