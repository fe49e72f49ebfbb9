import { AppError } from '@skerry/protocol';
import { headerValues } from './host.ts';

/** Headers of one connection, not of the message (RFC 9110 §7.6.1), and the framing, which each side does for itself. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** What a `Connection` header must not take away: the message would change its meaning. */
const NEVER_DROPPED = new Set(['host', 'content-length', 'expect']);

/**
 * By these, and by whatever begins with `x-forwarded-`, programs learn from a proxy who asked and for what. Strangers may
 * write anything there; the instance shall be able to trust what the gateway says, and what it does not say.
 */
const SAID_BY_PROXIES = new Set([
  'forwarded',
  'forwarded-for',
  'x-forwarded',
  'x-original-forwarded-for',
  'x-real-ip',
  'x-client-ip',
  'client-ip',
  'true-client-ip',
  'x-cluster-client-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-originating-ip',
  'x-proxyuser-ip',
  'wl-proxy-client-ip',
  'proxy-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'fastly-client-ip',
  'x-azure-clientip',
  'x-appengine-user-ip',
  'x-envoy-external-address',
  'x-original-url',
  'x-original-uri',
  'x-original-host',
  'x-rewrite-url',
  'x-host',
  'x-scheme',
  'x-url-scheme',
  'front-end-https',
  // In CGI it becomes HTTP_PROXY, which programs take for a setting (httpoxy).
  'proxy',
]);

/** @param name in lower case. To CGI and its heirs `_` and `-` are the same. */
export const isSaidByProxies = (name: string) => {
  const plain = name.replaceAll('_', '-');
  return plain.startsWith('x-forwarded-') || SAID_BY_PROXIES.has(plain);
};

/** What a trailer must not say: it would come after the message was framed, routed or let in (RFC 9110 §6.5.1). */
const NOT_IN_TRAILERS = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'trailer',
  'expect',
  'max-forwards',
  'authorization',
  'cookie',
]);
/** @param name in lower case */
export const mayBeTrailer = (name: string) =>
  !name.startsWith(':') && !NOT_IN_TRAILERS.has(name) && !isSaidByProxies(name);

/** Methods that Node sends with a chunked body unless it is told that there is none. */
const BODILESS_BY_DEFAULT = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

function keepHeaders(rawHeaders: readonly string[], drop: (name: string) => boolean): string[] {
  return rawHeaders.filter((_, index) => !drop(rawHeaders[index - (index % 2)]!.toLowerCase()));
}

/** End-to-end headers, names and values in turn, in their order and spelling. */
export function endToEndHeaders(rawHeaders: readonly string[]): string[] {
  const listed = headerValues(rawHeaders, 'connection')
    .flatMap((value) => value.split(','))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !NEVER_DROPPED.has(name));
  const dropped = new Set([...HOP_BY_HOP, ...listed]);
  return keepHeaders(rawHeaders, (name) => dropped.has(name));
}

export function hasBody(rawHeaders: readonly string[]): boolean {
  return (
    headerValues(rawHeaders, 'transfer-encoding').length > 0 ||
    headerValues(rawHeaders, 'content-length').some((length) => Number(length) > 0)
  );
}

/** What Node's parser takes beside these (0.9, 2.0), another reader takes for something else. */
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1']);

/**
 * A request must have a version of HTTP/1 and one length that everybody reads alike (RFC 9112 §6.1, §6.3): a coding that is not plain `chunked`,
 * two framings at once, or chunks in HTTP/1.0 are refused, since the instance could see another end than we do.
 * Throws INVALID_PARAMETERS.
 */
export function checkFraming(httpVersion: string, rawHeaders: readonly string[]): void {
  if (!VERSIONS.has(httpVersion))
    throw new AppError('INVALID_PARAMETERS', 'Send this request as HTTP/1.1 or HTTP/1.0.');
  const codings = headerValues(rawHeaders, 'transfer-encoding');
  const lengths = headerValues(rawHeaders, 'content-length');
  const sound =
    codings.length === 0
      ? lengths.length <= 1 && lengths.every((length) => /^[0-9]+$/.test(length))
      : codings.length === 1 &&
        codings[0]!.toLowerCase() === 'chunked' &&
        lengths.length === 0 &&
        httpVersion !== '1.0';
  if (!sound)
    throw new AppError(
      'INVALID_PARAMETERS',
      'The length of the request body is ambiguous. Send one Content-Length, or Transfer-Encoding: chunked alone by HTTP/1.1.',
    );
}

export interface RequestHead {
  readonly method: string;
  readonly rawHeaders: readonly string[];
  readonly authority: string;
  /** The client's address, as the socket has it. */
  readonly clientAddress: string;
  /** The protocol that this request switches to, if it does. */
  readonly upgrade?: string | undefined;
}

const IPV4_MAPPED = /^::ffff:([0-9.]+)$/;

/** Who asked, in the one standard header (RFC 7239) and in the three that most programs read. */
export function forwardedHeaders(clientAddress: string, authority: string): [string, string][] {
  const address = clientAddress.replace(IPV4_MAPPED, '$1');
  const node = address.includes(':') ? `"[${address}]"` : address;
  return [
    ['Forwarded', `for=${node};host="${authority}";proto=http`],
    ['X-Forwarded-For', address],
    ['X-Forwarded-Proto', 'http'],
    ['X-Forwarded-Host', authority],
  ];
}

/** The headers of the request that the instance gets. */
export function requestHeaders(head: RequestHead): string[] {
  const { method, rawHeaders, authority, clientAddress, upgrade } = head;
  const headers = keepHeaders(endToEndHeaders(rawHeaders), isSaidByProxies);
  headers.push(...forwardedHeaders(clientAddress, authority).flat());
  if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade);
  if (headerValues(rawHeaders, 'transfer-encoding').length > 0) headers.push('Transfer-Encoding', 'chunked');
  else if (!BODILESS_BY_DEFAULT.has(method) && headerValues(rawHeaders, 'content-length').length === 0)
    headers.push('Content-Length', '0');
  return headers;
}
