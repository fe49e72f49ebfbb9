import { AppError, parseIpv6Prefix, parseNodeUrl } from '@skerry/protocol';
import { parseList } from '../options.ts';
import type { Role } from './roles.ts';

/** What an operator says about a node that joins, by flags or by answers. */
export interface Answers {
  /** Of the core node through which the node joins. */
  readonly coreUrl: string | undefined;
  readonly announceUrl: string | undefined;
  readonly prefix: string | undefined;
  readonly domain: string | undefined;
}

/** Which answers a role needs; the others mean nothing for it. */
const ASKS: Readonly<Record<Role, readonly (keyof Answers)[]>> = {
  compute: ['coreUrl', 'announceUrl', 'prefix'],
  gateway: ['coreUrl', 'domain'],
  core: ['coreUrl', 'announceUrl'],
  monitor: ['coreUrl'],
};

const DOMAIN = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/;
const EVERY_ADDRESS = '::';

/** Throws INVALID_PARAMETERS. */
function checked(name: string, value: string, parse: (text: string) => string): string {
  try {
    return parse(value);
  } catch (error) {
    throw new AppError('INVALID_PARAMETERS', `${name}: ${(error as Error).message}`, { cause: error });
  }
}

function parseDomain(text: string): string {
  const domain = text.toLowerCase().replace(/^\*\./, '').replace(/\.$/, '');
  if (!DOMAIN.test(domain)) throw new Error(`not a domain: ${JSON.stringify(text)}`);
  return domain;
}

/** Answers in one spelling, those that the role has no use for refused. Throws INVALID_PARAMETERS. */
export function checkAnswers(role: Role, answers: Answers): Answers {
  const { announceUrl, prefix, domain } = answers;
  for (const [name, value] of Object.entries({ announceUrl, prefix, domain }))
    if (value !== undefined && !ASKS[role].includes(name as keyof Answers))
      throw new AppError('INVALID_PARAMETERS', `a ${role} node has no ${name}`);
  return {
    coreUrl: answers.coreUrl,
    announceUrl: announceUrl === undefined ? undefined : checked('announce URL', announceUrl, parseNodeUrl),
    prefix: prefix === undefined ? undefined : checked('prefix', prefix, parseIpv6Prefix),
    domain: domain === undefined ? undefined : checked('domain', domain, parseDomain),
  };
}

/** Where a daemon listens whose URL others were told: a proxy in front of it is on this server. */
const listensOn = (announceUrl: string | undefined) =>
  announceUrl === undefined || announceUrl.startsWith('https:') ? undefined : EVERY_ADDRESS;

/** The port that others are told is the daemon's own, unless a proxy stands in front. */
const portIn = (announceUrl: string | undefined) =>
  listensOn(announceUrl) === undefined ? undefined : new URL(announceUrl!).port || '80';

/** Gossip passes by the proxy in front of the API, at a port that a firewall can open. */
const PUBLIC_GOSSIP = { SKERRY_CORE_P2P_HOST: EVERY_ADDRESS, SKERRY_CORE_P2P_PORT: '4025' };

/** Variables without those of gossip that only follow from a URL: a daemon that was set up before may lack them. */
export const withoutGossip = (variables: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in PUBLIC_GOSSIP)));

/** Its visitors come from everywhere; its own API is asked through a proxy of this server, which names them. */
const PUBLIC_GATEWAY = {
  SKERRY_GATEWAY_HOST: EVERY_ADDRESS,
  SKERRY_GATEWAY_HTTP_PORT: '80',
  SKERRY_GATEWAY_HTTPS_PORT: '443',
  SKERRY_GATEWAY_API_HOST: '127.0.0.1',
  SKERRY_GATEWAY_TRUSTED_PROXIES: '127.0.0.1,::1',
};

/** Where a daemon listens, and what stands before it, is only guessed: what is set already counts. */
const GUESSED = /_(HOST|PORT|PROXIES)$/;

/** A list with one more, unless it is there. */
const withOne = (list: string | undefined, one: string | undefined) =>
  one === undefined ? undefined : [...new Set([...parseList(list ?? ''), one])].join(',');

/** The settings that follow from the answers. What is undefined stays as it is. Pure. @param given what is set already */
export function variablesOf(
  role: Role,
  answers: Answers,
  given: Readonly<Record<string, string | undefined>> = {},
): Readonly<Record<string, string>> {
  const { coreUrl, announceUrl, prefix, domain } = answers;
  const [host, port] = [listensOn(announceUrl), portIn(announceUrl)];
  const all: Readonly<Record<Role, Readonly<Record<string, string | undefined>>>> = {
    compute: {
      SKERRY_COMPUTE_CORE_URL: coreUrl,
      SKERRY_COMPUTE_ANNOUNCE_URL: announceUrl,
      SKERRY_COMPUTE_HOST: host,
      SKERRY_COMPUTE_PORT: port,
      SKERRY_COMPUTE_IPV6_PREFIX: prefix,
      // It left before, and comes back.
      SKERRY_COMPUTE_DRAIN: given.SKERRY_COMPUTE_DRAIN === undefined ? undefined : 'no',
    },
    gateway: {
      SKERRY_GATEWAY_CORE_URL: coreUrl,
      SKERRY_GATEWAY_DOMAIN: domain,
      ...(domain === undefined || domain.endsWith('.localhost') ? {} : PUBLIC_GATEWAY),
    },
    core: {
      SKERRY_CORE_PEERS: withOne(given.SKERRY_CORE_PEERS, coreUrl),
      SKERRY_CORE_URLS: withOne(given.SKERRY_CORE_URLS, announceUrl),
      SKERRY_CORE_HOST: host,
      SKERRY_CORE_PORT: port,
      ...(announceUrl === undefined ? {} : PUBLIC_GOSSIP),
    },
    monitor: { SKERRY_MONITOR_CORE_URL: coreUrl },
  };
  return Object.fromEntries(
    Object.entries(all[role]).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && !(GUESSED.test(entry[0]) && given[entry[0]] !== undefined),
    ),
  );
}
