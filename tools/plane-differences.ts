import { HAPROXY_DIFFERENCES } from '../services/gateway/src/dataplane/haproxy/differences.ts';

/** `<!-- differences of HAProxy -->`, what is generated, `<!-- /differences -->`. */
const BLOCK = /(<!-- differences of HAProxy -->\n).*?(<!-- \/differences -->)/s;

/** The page with the list of what HAProxy does not do as the other data planes do; what is not between the marks stays. */
export function fillDifferences(page: string): string {
  const rows = Object.values(HAPROXY_DIFFERENCES).map((reason) => `- ${reason}\n`);
  return page.replace(BLOCK, (_, begin: string, end: string) => `${begin}\n${rows.join('')}\n${end}`);
}
