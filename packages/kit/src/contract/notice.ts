import { escapeHtml } from '../http/html.ts';
import { CONTENT_SECURITY_POLICY, prose, STYLE } from './reference-page.ts';

/** Browsers say that they take HTML before anything else; programs that say nothing get another form. */
export const wantsPage = (accept: string | undefined) => accept?.includes('text/html') === true;

/** Of every small page that a service writes itself: it loads nothing, and nothing frames it. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  vary: 'accept',
} as const;

/** A page of a heading and some sentences, for people. Text between backquotes is code. */
export function renderNotice(title: string, sentences: readonly string[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${sentences.map((sentence) => `<p>${prose(sentence)}</p>`).join('\n')}
</body></html>
`;
}
