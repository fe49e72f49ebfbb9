import type { IncomingHttpHeaders } from 'node:http';
import { checkJsonDepth } from '@skerry/protocol';

/** Fields that are about a connection (RFC 9110, section 7.6.1), or that are the node's own to say. */
const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
];
/** Cookies of a node's origin are the node's, since all programs share it. */
const NOT_PASSED = new Set([...CONNECTION_FIELDS, 'cookie']);
/**
 * By which a browser goes for everything of an origin from then on: where it is, and whom to tell which of its addresses were asked for
 * (Alt-Svc, RFC 7838; Network Error Logging; the Reporting API). All programs share the node's.
 */
const ORIGIN_FIELDS = [
  ...['set-cookie', 'strict-transport-security', 'clear-site-data', 'service-worker-allowed'],
  ...['alt-svc', 'nel', 'report-to'],
];
const NOT_ANSWERED = new Set([
  ...CONNECTION_FIELDS,
  ...ORIGIN_FIELDS,
  'content-length',
  'server',
  'date',
  'x-request-id',
]);

const FIELDS_MAX = 64;
const VALUE_CHARS_MAX = 8_192;
/** Of all fields together: readers of HTTP, Node among them, give up an answer whose header has more than 16 KiB, with the node's own in it. */
const FIELDS_CHARS_MAX = 12 * 1024;
/** What separates a name, its value and the next field. */
const SEPARATOR_CHARS = 4;
/** RFC 9110, sections 5.1 and 5.5. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What of a request's header a program is given. */
export function callHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !NOT_PASSED.has(name))
      own[name] = Array.isArray(value) ? value.join(', ') : value;
  return own;
}

/** What of a program's header is answered: fields that HTTP knows how to write, and that are the program's to say. */
export function answerableHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const own = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(
      ([name, value]) =>
        NAME.test(name) &&
        VALUE.test(value) &&
        value.length <= VALUE_CHARS_MAX &&
        !NOT_ANSWERED.has(name) &&
        !name.startsWith('net-program-') &&
        !name.startsWith('access-control-'),
    );
  let chars = 0;
  return Object.fromEntries(
    own.slice(0, FIELDS_MAX).filter(([name, value]) => {
      const own = name.length + value.length + SEPARATOR_CHARS;
      if (chars + own > FIELDS_CHARS_MAX) return false;
      chars += own;
      return true;
    }),
  );
}

/** What a function is given as its variables: the object that the body is, in JSON; else the query. */
export function variablesOf(body: Buffer, query: string): unknown {
  if (body.length > 0) {
    try {
      const text = body.toString('utf8');
      checkJsonDepth(text);
      const value: unknown = JSON.parse(text);
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
    } catch {
      // Bytes of another kind, or deeper than what writes them can go: the program finds them in the request.
    }
  }
  return Object.fromEntries(new URLSearchParams(query));
}
