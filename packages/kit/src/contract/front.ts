import type { Api } from '@skerry/protocol/api/operation';
import type { FRONT_API } from '@skerry/protocol/api/reference';
import { VERSION } from '../daemon/version.ts';
import { escapeHtml } from '../http/html.ts';
import type { ApiInfo } from './document.ts';
import { PAGE_HEADERS, wantsPage } from './notice.ts';
import { prose, STYLE } from './reference-page.ts';
import { answer, type Handlers } from './serve.ts';

/** What a reader may look for, by its path, where a service has it. */
const DOCUMENTS: readonly [name: string, path: string, what: string][] = [
  ['reference', '/api/v0/docs', 'every operation of this service, to read'],
  ['openapi', '/api/v0/openapi.json', 'the same for programs (OpenAPI 3.1)'],
  ['health', '/health', 'whether it is well'],
  ['status', '/status', 'what it is busy with'],
  ['metrics', '/metrics', 'its figures, for Prometheus'],
];

const listDocuments = (api: Api) => {
  const paths = new Set(Object.values(api).flatMap(({ method, path }) => (method === 'GET' ? [path] : [])));
  return DOCUMENTS.filter(([, path]) => paths.has(path));
};

function renderFront({ title, description }: ApiInfo, documents: ReturnType<typeof listDocuments>): string {
  const rows = documents.map(
    ([, path, what]) => `<tr><td><a href="${path}">${path}</a></td><td>${escapeHtml(what)}</td></tr>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)} <small>${escapeHtml(VERSION)}</small></h1>
${description
  .split('\n')
  .map((line) => `<p>${prose(line)}</p>`)
  .join('')}
<table>${rows.join('')}</table></body></html>
`;
}

/** The root of a service. @param api all of its contract */
export function frontHandlers(api: Api, info: ApiInfo): Handlers<typeof FRONT_API> {
  const documents = listDocuments(api);
  const page = renderFront(info, documents);
  const record = {
    name: info.title,
    version: VERSION,
    description: info.description,
    documents: Object.fromEntries(documents.map(([name, path]) => [name, path])),
  };
  return {
    getFront({ request }) {
      if (!wantsPage(request.headers.accept)) return answer(200, record, { vary: 'accept' });
      return answer(200, page, PAGE_HEADERS);
    },
  };
}
