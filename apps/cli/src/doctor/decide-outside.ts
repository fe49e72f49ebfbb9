import { isPublicAddress, urlOfListener } from '@skerry/kit';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Role, RoleSettings } from '../joining/roles.ts';
import { type Check, checksOf } from './check.ts';
import { type Attempt, type Facts, isFromInside } from './facts.ts';

/** How others see the server. Pure. */

const outside = checksOf('Seen from outside');
const JOINING = 'docs/joining.md';
const SECTIONS: Readonly<Record<Role, string>> = {
  compute: 'docs/guides/compute-node.md',
  gateway: 'docs/guides/gateway.md',
  core: 'docs/guides/core-node.md',
  monitor: 'docs/guides/monitor.md',
};

const portOf = (url: URL) => Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
const isAddress = (name: string) => /^(\[.*\]|[0-9.]+)$/.test(name);
const openPort = (port: number) => `nft add rule inet filter input tcp dport ${port} accept`;

/** What keeps others out, and what mends it. */
function mendOf(attempt: Attempt, another: string): { text: string; mend: string } {
  const { verdict, place, seenAs } = attempt;
  const url = new URL(place);
  const port = portOf(url);
  const name = url.hostname;
  switch (verdict) {
    case 'NOT_YOURS':
      return {
        text: `${place} does not lead to this server, which others see as ${seenAs}`,
        mend: isAddress(name)
          ? `Say the URL at which others reach this server: --announce-url ${shellWord(urlOfListener('http', seenAs ?? name, port))}`
          : `Point ${name} at ${seenAs} in the DNS, or say the right URL: --announce-url URL`,
      };
    case 'NOT_PUBLIC':
      return {
        text: `others see this server as ${seenAs}, which is a private address`,
        mend: `Name a core node outside your network ${another}, or, on a private network, set SKERRY_CORE_ALLOW_PRIVATE=yes there.`,
      };
    case 'BAD_CERTIFICATE':
      return {
        text: `${place} has no certificate that others accept`,
        mend: `Get one for ${name}, for example: certbot certonly -d ${name}`,
      };
    case 'OTHER_ANSWER':
      return {
        text: `something else answers at ${place}`,
        mend: `Forward port ${port} of ${name} to this server, or see what is there: curl -i ${shellWord(place)}`,
      };
    case 'NO_ANSWER':
      return {
        text: `${place} takes connections but does not answer`,
        mend: `A proxy in front must forward to this node; try it from elsewhere: curl -m 5 ${shellWord(place)}`,
      };
    default:
      return {
        text: `${isFromInside(attempt) ? 'even the core node on this server' : 'others'} cannot connect to ${place}`,
        mend: `The daemon must listen on every address (HOST=::); open its port here and at your provider: ${openPort(port)}`,
      };
  }
}

/** Whether this is where a gateway takes TLS alone: whoever asks there without it is let go. */
const isTlsDoor = ({ role, ports }: RoleSettings, place: string) =>
  role === 'gateway' &&
  ports.some(({ variable, port }) => /_HTTPS_PORT$/.test(variable) && port === portOf(new URL(place)));

/** What of a place is reached; undefined where it is not, or where that does not show. */
function reachedOf({ verdict, place }: Attempt, { settings, isRunning }: Facts): string | undefined {
  if (verdict === 'REACHED') return place;
  if (!isRunning) return undefined;
  // The daemon has the port, and does not know the nonce.
  if (verdict === 'OTHER_ANSWER') return `${place}, where this server's daemon answers`;
  if (verdict !== 'NO_ANSWER' || !isTlsDoor(settings, place)) return undefined;
  return `${new URL(place).host}, where this server's daemon takes TLS`;
}

function decidePlace(attempt: Attempt, facts: Facts): Check {
  const { verdict, place, why } = attempt;
  const { another } = facts;
  const { role } = facts.settings;
  const reached = reachedOf(attempt, facts);
  if (reached !== undefined)
    return outside.ok(
      'REACHABLE',
      isFromInside(attempt)
        ? `the core node on this server reaches ${reached}; nobody else was asked`
        : `others reach ${reached}`,
    );
  if (verdict === 'UNASKED' || verdict === 'UNKNOWN_CLIENT')
    return outside.warn(
      'UNCHECKED',
      `not known whether others reach ${place}: ${why ?? 'the core node is behind a proxy that it does not know'}`,
      {
        mend: `Try it from elsewhere: curl -m 5 ${shellWord(place)}`,
      },
    );
  const { text, mend } = mendOf(attempt, another);
  return outside.fail(verdict === 'NOT_PUBLIC' ? 'NOT_PUBLIC' : 'UNREACHABLE', text, {
    mend,
    docs: SECTIONS[role],
  });
}

function decidePrefix({ prefix, isRunning }: Facts): Check[] {
  if (!prefix) return [];
  const { verdict, place, why } = prefix;
  const docs = `${JOINING}#the-ipv6-prefix`;
  if (verdict === 'REACHED')
    return [
      outside.ok(
        'PREFIX_ROUTED',
        `${place} is routed to this server${isFromInside(prefix) ? ', as a core node on it sees; nobody else was asked' : ''}`,
      ),
    ];
  if (verdict === 'UNASKED')
    return [
      isRunning
        ? outside.ok('PREFIX_ROUTED', `${place} is held by the running node; schedulers prove it`)
        : outside.warn('PREFIX_UNCHECKED', `not known whether ${place} is routed here: ${why}`, { docs }),
    ];
  if (verdict === 'NOT_PUBLIC')
    return [
      outside.warn('PREFIX_PRIVATE', `${place} is private: only your own network can route it`, {
        mend: 'Say a public /64 that your provider routes to this server: --prefix 2001:db8:1:2::/64',
        docs,
      }),
    ];
  return [
    outside.fail('PREFIX_NOT_ROUTED', `${place} is not routed to this server, or TCP port 4029 is closed`, {
      mend: `Have your provider route the /64 here, and open the port: ${openPort(4029)}`,
      docs,
    }),
  ];
}

/** The record of the type that an address needs. */
const recordOf = (name: string, address: string) =>
  `${name}. ${address.includes(':') ? 'AAAA' : 'A'} ${address}`;

function decideName({ name, settings, ownAddresses, places }: Facts): Check[] {
  if (!name) return [];
  const shown = settings.role === 'gateway' ? `*.${settings.domain}` : name.name;
  const seenAs = places.find((one) => one.seenAs !== null)?.seenAs ?? undefined;
  const here = new Set([...ownAddresses, ...(seenAs === undefined ? [] : [seenAs])]);
  const target = seenAs ?? ownAddresses.find(isPublicAddress) ?? "this server's public address";
  const docs = SECTIONS[settings.role];
  if (name.addresses.length === 0)
    return [
      outside.fail('NO_RECORD', `${shown} has no address in the DNS`, {
        mend: `Add the record: ${recordOf(shown, target)}`,
        docs,
      }),
    ];
  const elsewhere = name.addresses.filter((address) => !here.has(address));
  return elsewhere.length === 0
    ? [outside.ok('RECORD', `${shown} leads to this server`)]
    : [
        outside.fail('WRONG_RECORD', `${shown} leads to ${elsewhere.join(', ')}, which is not this server`, {
          mend: `Change the record: ${recordOf(shown, target)}`,
          docs,
        }),
      ];
}

export const decideOutside = (facts: Facts): Check[] => [
  ...decideName(facts),
  ...facts.places.map((one) => decidePlace(one, facts)),
  ...decidePrefix(facts),
];
