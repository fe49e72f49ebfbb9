import type { HttpServer } from '@skerry/kit';
import Type from 'typebox';
import { answersFromMemory } from './declare.ts';
import type { Document } from './document.ts';
import { CONTENT_SECURITY_POLICY, renderReference } from './reference-page.ts';

const DocumentView = Type.Object({
  openapi: Type.String(),
  info: Type.Record(Type.String(), Type.Unknown()),
  paths: Type.Record(Type.String(), Type.Unknown()),
});
const PageView = { description: 'a page to read', content: { 'text/html': { schema: Type.String() } } };

/** The document of the routes, for programs and for people. It is made once. */
export async function referenceRoutes(app: HttpServer): Promise<void> {
  let page: string | undefined;
  app.get(
    '/openapi.json',
    {
      schema: { summary: 'This document (OpenAPI 3.1)', response: { 200: DocumentView } },
      config: answersFromMemory(),
    },
    async () => app.swagger() as unknown as Document,
  );
  app.get(
    '/docs',
    {
      schema: { summary: 'This document as a page', response: { 200: PageView } },
      config: answersFromMemory(),
    },
    async (_request, reply) => {
      page ??= renderReference(app.swagger() as unknown as Document);
      return reply
        .headers({
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': CONTENT_SECURITY_POLICY,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
        })
        .send(page);
    },
  );
}
