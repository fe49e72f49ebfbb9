import type { Api, Examples } from '@skerry/protocol/api/operation';
import type { REFERENCE_API } from '@skerry/protocol/api/reference';
import { type ApiInfo, type PerMinute, writeDocument } from './document.ts';
import { withExamples } from './example.ts';
import { CONTENT_SECURITY_POLICY, renderReference } from './reference-page.ts';
import { answer, type Handlers } from './serve.ts';

/**
 * The contract of a service, for programs and for people. Both are made when they are first asked for.
 * @param readExamples those that stand beside the table: no service loads them at its start
 */
export function referenceHandlers(
  api: Api,
  info: ApiInfo,
  perMinute: PerMinute = {},
  readExamples: () => Promise<Examples> = async () => ({}),
): Handlers<typeof REFERENCE_API> {
  let document: ReturnType<typeof writeDocument> | undefined;
  let page: string | undefined;
  return {
    async getDocument() {
      document ??= writeDocument(withExamples(api, await readExamples()), info, perMinute);
      return document as unknown as Record<'openapi', string> &
        Record<'info' | 'paths', Record<string, unknown>>;
    },
    async getReference() {
      page ??= renderReference(withExamples(api, await readExamples()), info, perMinute);
      return answer(200, page, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    },
  };
}
