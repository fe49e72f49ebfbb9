import { AppError } from '@skerry/protocol';

/** Where a request goes: decided from its target and Host header alone (RFC 9112 §3.2). */
export interface RequestTarget {
  /** In lower case, without port and trailing dot. */
  readonly hostname: string;
  /** As the client wrote it. */
  readonly authority: string;
  /** Path and query for the instance. */
  readonly path: string;
}

/** A host name of 253 characters, a trailing dot, a colon and a port. */
const MAX_AUTHORITY_CHARS = 253 + 1 + 1 + 5;

const AUTHORITY = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::[0-9]{0,5})?$/i;
const ABSOLUTE_FORM = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i;

const refusal = (message: string) => new AppError('INVALID_HOST', message);

/** The values of one header, in order, from Node's flat list of names and values. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name);
}

/** Host name without port, in lower case, without trailing dot. Throws INVALID_HOST, HEADERS_TOO_LARGE. */
function parseAuthority(authority: string): string {
  if (authority.length > MAX_AUTHORITY_CHARS)
    throw new AppError(
      'HEADERS_TOO_LARGE',
      `The Host header is longer than ${MAX_AUTHORITY_CHARS} characters.`,
    );
  const match = AUTHORITY.exec(authority);
  if (!match) throw refusal('The Host header is not a host name with an optional port.');
  return match[1]!.toLowerCase().replace(/\.$/, '');
}

/** Throws INVALID_HOST (missing, twice, malformed, contradicting the target) and HEADERS_TOO_LARGE. */
export function parseRequestTarget(url: string, rawHeaders: readonly string[]): RequestTarget {
  const hosts = headerValues(rawHeaders, 'host');
  if (hosts.length === 0 || hosts[0] === '')
    throw refusal('The request has no Host header, so it cannot be routed.');
  if (hosts.length > 1) throw refusal('The request has more than one Host header.');
  const authority = hosts[0]!;
  const hostname = parseAuthority(authority);
  const absolute = ABSOLUTE_FORM.exec(url);
  if (absolute) {
    if (parseAuthority(absolute[1]!) !== hostname)
      throw refusal('The request names one host in its target and another in its Host header.');
    const rest = absolute[2] ?? '';
    return { hostname, authority, path: rest.startsWith('/') ? rest : `/${rest}` };
  }
  if (!url.startsWith('/') && url !== '*')
    throw refusal('The request target is neither a path nor an http address.');
  return { hostname, authority, path: url };
}
