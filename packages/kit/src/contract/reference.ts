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
  /** Once, however many ask while the examples are read. */
  const once = <T>(write: (shown: Api, about: ApiInfo, rates: PerMinute) => T) => {
    let written: T | undefined;
    return async (): Promise<T> => {
      if (written !== undefined) return written;
      const examples = await readExamples();
      written ??= write(withExamples(api, examples), info, perMinute);
      return written;
    };
  };
  const document = once(writeDocument);
  const page = once(renderReference);
  return {
    async getDocument() {
      return (await document()) as unknown as Record<'openapi', string> &
        Record<'security', readonly unknown[]> &
        Record<'info' | 'paths' | 'components', Record<string, unknown>>;
    },
    async getReference() {
      return answer(200, await page(), {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    },
  };
}
