import { prefixOfHostname } from '@skerry/protocol';
import type { Explanation, RouteFailure } from '../dataplane/port.ts';
import { explainNoAddress, type Instance, isBarred, whyHolder } from './instance.ts';
import type { InstanceTable } from './table.ts';

/** What the gateway last heard of an instance. */
function stateSentence({ phase, reason }: Instance): string {
  return `Its last known phase is "${phase}"${reason === null ? '' : ` (${reason})`}.`;
}

function isFourWords(subdomain: string): boolean {
  try {
    prefixOfHostname(subdomain);
    return true;
  } catch {
    return false;
  }
}

/** Why a name is not routed. */
function explainNotRouted(table: InstanceTable, hostname: string): Explanation {
  const { domain } = table;
  const unknown = (why: string): Explanation => ({ code: 'HOSTNAME_NOT_FOUND', message: why });
  if (!hostname.endsWith(`.${domain}`))
    return unknown(
      `${hostname} is not a name of this gateway: its names are four words followed by .${domain}.`,
    );
  const subdomain = hostname.slice(0, -domain.length - 1);
  const [holder, ...others] = table.listNamed(subdomain);
  if (!holder) {
    return unknown(
      isFourWords(subdomain)
        ? `No instance known to this gateway has the name ${subdomain}. A new instance appears within seconds.`
        : `${subdomain} is not four words from the word list.`,
    );
  }
  const shared =
    others.length > 0
      ? ` ${others.length} other instance(s) share the name and wait for it; ${whyHolder(holder, others[0]!)}.`
      : '';
  if (holder.desired === 'stopped')
    return {
      code: 'INSTANCE_NOT_ROUTED',
      message: `The instance ${subdomain} is stopped by its owner.${shared}`,
    };
  if (isBarred(holder))
    return {
      code: 'INSTANCE_NOT_ROUTED',
      message: `The instance ${subdomain} cannot start. ${stateSentence(holder)}${shared}`,
    };
  return {
    code: 'INSTANCE_NOT_ROUTED',
    message: `The instance ${subdomain} cannot be reached: ${explainNoAddress(holder)}. ${stateSentence(holder)}${shared}`,
  };
}

const ATTEMPTS: Readonly<Record<Exclude<RouteFailure, 'not_routed'>, (where: string) => Explanation>> = {
  refused: (where) => ({ code: 'INSTANCE_UNREACHABLE', message: `Nothing accepts connections at ${where}.` }),
  unreachable: (where) => ({
    code: 'INSTANCE_UNREACHABLE',
    message: `This gateway has no route to ${where}.`,
  }),
  gateway_full: (where) => ({
    code: 'OVERLOADED',
    message: `This gateway has no port or file descriptor left to connect to ${where} with.`,
  }),
  broken: (where) => ({
    code: 'INSTANCE_UNREACHABLE',
    message: `The answer from ${where} is incomplete or not HTTP.`,
  }),
  connect_timeout: (where) => ({
    code: 'INSTANCE_TIMED_OUT',
    message: `The connection to ${where} timed out.`,
  }),
  response_timeout: (where) => ({
    code: 'INSTANCE_TIMED_OUT',
    message: `${where} accepted the request but did not answer in time.`,
  }),
};

/** The first thing that is missing, for the person who asked for a page. */
export function explainFailure(
  table: InstanceTable,
  hostname: string,
  failure: RouteFailure,
  upstreamPort: number,
): Explanation {
  if (failure === 'not_routed') return explainNotRouted(table, hostname);
  const [holder] = table.listNamed(hostname.slice(0, -table.domain.length - 1));
  // The route can have gone while the request was under way.
  if (!holder) return explainNotRouted(table, hostname);
  const { code, message } = ATTEMPTS[failure](`[${holder.ipv6}]:${upstreamPort}`);
  return { code, message: `${message} ${stateSentence(holder)}` };
}
