import type { Api } from '@skerry/protocol/api/operation';
import type { REFERENCE_API } from '@skerry/protocol/api/reference';
import { type ApiInfo, type PerMinute, writeDocument } from './document.ts';
import { CONTENT_SECURITY_POLICY, renderReference } from './reference-page.ts';
import { answer, type Handlers } from './serve.ts';

/** The contract of a service, for programs and for people. Both are made when they are first asked for. */
export function referenceHandlers(
  api: Api,
  info: ApiInfo,
  perMinute: PerMinute = {},
): Handlers<typeof REFERENCE_API> {
  let document: ReturnType<typeof writeDocument> | undefined;
  let page: string | undefined;
  return {
    getDocument() {
      document ??= writeDocument(api, info, perMinute);
      return document as unknown as Record<'openapi', string> &
        Record<'info' | 'paths', Record<string, unknown>>;
    },
    getReference() {
      page ??= renderReference(api, info, perMinute);
      return answer(200, page, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    },
  };
}
