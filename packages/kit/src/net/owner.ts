import ipaddr from 'ipaddr.js';

/** Below a country's domain: what its registry gives names under, as in example.co.uk. */
const REGISTRY_LABELS: ReadonlySet<string> = new Set(
  'ac asn co com edu gob gouv gov go id ind info ltd me mil muni ne net nom or org plc pp re sch web'.split(
    ' ',
  ),
);
const COUNTRY_CHARS = 2;

/**
 * Who has the place that a stranger's URL names, as far as that can be guessed: the domain, the IPv4 /24 or the IPv6 /48. Names below a domain,
 * ports and addresses of such a network cost nothing, so whoever announces thousands of URLs has few of these. Throws TypeError where it is no URL.
 */
export function ownerOfUrl(url: string): string {
  const hostname = new URL(url).hostname.replace(/\.$/, '');
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  if (ipaddr.isValid(bare)) {
    const address = ipaddr.process(bare);
    if (address instanceof ipaddr.IPv4) return address.octets.slice(0, 3).join('.');
    return address.parts
      .slice(0, 3)
      .map((part) => part.toString(16))
      .join(':');
  }
  const labels = hostname.split('.');
  const isCountry = labels.at(-1)!.length === COUNTRY_CHARS;
  return labels.slice(isCountry && REGISTRY_LABELS.has(labels.at(-2) ?? '') ? -3 : -2).join('.');
}
