import { type ErrorCode, hostnameOf, type ItemHash, prefixOfHostname, readItemHash } from '@skerry/protocol';
import { WHY_STEPS, type WhyRecord } from '@skerry/protocol/api/gateway';
import type { Attempts, QuicAttempts, RouteFailure } from '../dataplane/port.ts';
import { explainNoAddress, type Instance, isBarred, isRoutable, sinceOf, whyHolder } from './instance.ts';
import { fullHostname } from './named-route.ts';
import type { InstanceTable } from './table.ts';

/** One link of the chain from a message to a served connection. */
export interface WhyStep {
  readonly step: (typeof WHY_STEPS)[number];
  /** Null where it cannot be told: nothing was tried, or an earlier step is missing. */
  readonly ok: boolean | null;
  readonly detail: string;
}

export interface Why {
  readonly hostname: string;
  readonly instanceHash: ItemHash | null;
  readonly ipv6: string | null;
  readonly steps: readonly WhyStep[];
  /** The first thing that is missing; null where nothing is. */
  readonly missing: { readonly code: ErrorCode; readonly message: string } | null;
}

/** Who is asked about: the subdomain, and the one hash where a hash was given. */
export interface WhySubject {
  readonly subdomain: string;
  readonly hash: ItemHash | undefined;
}

/** A hash, four words, or a whole host name of this gateway. Throws INVALID_HOSTNAME. */
export function parseWhySubject(text: string, domain: string): WhySubject {
  const hash = readItemHash(text);
  if (hash !== undefined) return { subdomain: hostnameOf(hash), hash };
  const lower = text.toLowerCase().replace(/\.$/, '');
  const subdomain = lower.endsWith(`.${domain}`) ? lower.slice(0, -domain.length - 1) : lower;
  prefixOfHostname(subdomain);
  return { subdomain, hash: undefined };
}

/** What came of the connection that was made to find out. */
export interface Probe {
  readonly port: number;
  readonly failure: RouteFailure | null;
}

/** Of the ports that were tried; `quic` is undefined where it was not. */
export interface Probes {
  readonly tcp: readonly Probe[];
  readonly quic: Probe | undefined;
}
export const NOT_PROBED: Probes = { tcp: [], quic: undefined };

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();

function connectionStep(probes: readonly Probe[], attempts: Attempts | undefined): WhyStep {
  const tried = probes
    .map(
      ({ port, failure }) =>
        `port ${port}: ${failure === null ? 'accepts connections' : failure.replaceAll('_', ' ')}`,
    )
    .join(', ');
  const known = probes.filter(({ failure }) => failure !== 'gateway_full');
  const last =
    attempts?.connectedAt || attempts?.failedAt
      ? `; last connection for a client ${attempts.connectedAt ? iso(attempts.connectedAt) : 'never'}` +
        (attempts.failedAt ? `, last failure ${iso(attempts.failedAt)} (${attempts.failure})` : '')
      : '; no client has been connected yet';
  return {
    step: 'connection',
    ok: known.length === 0 ? null : known.some(({ failure }) => failure === null),
    detail: `${tried || 'not tried'}${probes.length > 0 ? last : ''}`,
  };
}

const CODES: Readonly<Record<WhyStep['step'], ErrorCode>> = {
  message: 'HOSTNAME_NOT_FOUND',
  name: 'INSTANCE_NOT_ROUTED',
  desired: 'INSTANCE_NOT_ROUTED',
  allocation: 'INSTANCE_NOT_ROUTED',
  phase: 'INSTANCE_UNREACHABLE',
  connection: 'INSTANCE_UNREACHABLE',
};

function stepsOf(instance: Instance, named: readonly Instance[]): WhyStep[] {
  const [holder] = named;
  const isHolder = holder === instance;
  const state = `"${instance.phase}"${instance.reason === null ? '' : `: ${instance.reason}`}`;
  return [
    { step: 'message', ok: true, detail: `the instance counts from ${sinceOf(instance)}` },
    {
      step: 'name',
      ok: isHolder,
      detail: isHolder
        ? named.length > 1
          ? `it has the name; ${named.length - 1} other instance(s) share it and wait`
          : 'no other instance has the name'
        : `collision lost: ${holder!.hash} has the name: ${whyHolder(holder!, instance)}`,
    },
    {
      step: 'desired',
      ok: instance.desired === 'running',
      detail: instance.desired === 'running' ? 'its owner wants it to run' : 'it is stopped by its owner',
    },
    {
      step: 'allocation',
      ok: instance.ipv6 !== null,
      detail:
        instance.ipv6 === null
          ? `${explainNoAddress(instance)}; phase ${state}`
          : `its address is ${instance.ipv6}`,
    },
    { step: 'phase', ok: instance.phase === 'running', detail: `its last known phase is ${state}` },
  ];
}

/** The chain for a name or a hash, up to the last connection. Pure: what was tried and met is given. */
export function explainWhy(
  table: InstanceTable,
  subject: WhySubject,
  probes: readonly Probe[],
  attempts: Attempts | undefined,
): Why {
  const hostname = fullHostname(subject.subdomain, table.domain);
  const named = table.listNamed(subject.subdomain);
  const instance = subject.hash === undefined ? named[0] : table.find(subject.hash);
  if (!instance) {
    const detail = `no instance that this gateway knows has ${subject.hash === undefined ? `the name ${subject.subdomain}` : 'this hash'}`;
    const steps = WHY_STEPS.map((step, index) =>
      index === 0 ? { step, ok: false, detail } : { step, ok: null, detail: 'not reached' },
    );
    const missing = { code: CODES.message, message: detail };
    return { hostname, instanceHash: subject.hash ?? null, ipv6: null, steps, missing };
  }
  const connection = connectionStep(probes, attempts);
  const steps = [...stepsOf(instance, named), connection];
  // What answers is reachable, whatever its node last said of it.
  const first = steps.find(({ step, ok }) => ok === false && !(step === 'phase' && connection.ok));
  const code =
    first?.step === 'phase' && isBarred(instance) ? 'INSTANCE_NOT_ROUTED' : CODES[first?.step ?? 'phase'];
  const missing = first ? { code, message: `${first.detail}` } : null;
  return { hostname, instanceHash: instance.hash, ipv6: instance.ipv6, steps, missing };
}

/** Told only until the instance says something again. */
function explainRefused(quic: QuicAttempts | undefined): string {
  if (!quic?.refusedAt || quic.refusedAt <= (quic.answeredAt ?? 0)) return '';
  const answered = quic.answeredAt ? `since ${iso(quic.answeredAt)}` : 'so far';
  return `; it has answered no client ${answered}, so most are refused, the last at ${iso(quic.refusedAt)}`;
}

/**
 * Whether HTTP/3 reaches an instance. Nothing is missing where it does not: browsers use TCP.
 *
 * @param noQuic why the gateway does not forward QUIC; null where it does
 * @param quic what clients have met with; undefined where that is not known
 */
export function explainHttp3(
  noQuic: string | null,
  instance: Pick<Instance, 'proxyHeader'> | undefined,
  probe: Probe | undefined,
  quic: QuicAttempts | undefined,
): NonNullable<WhyRecord['http3']> {
  if (noQuic !== null) return { ok: null, detail: `this gateway does not forward QUIC: ${noQuic}` };
  if (instance?.proxyHeader)
    return {
      ok: false,
      detail: 'the instance asks for the PROXY protocol, which servers do not read over UDP',
    };
  if (probe === undefined) return { ok: null, detail: 'not tried' };
  const { port, failure } = probe;
  const refused = explainRefused(quic);
  if (failure === null) return { ok: true, detail: `UDP port ${port}: answers${refused}` };
  const hint = `the instance needs a server for HTTP/3, and udp:${port} among its ports`;
  return { ok: false, detail: `UDP port ${port}: ${failure.replaceAll('_', ' ')}; ${hint}${refused}` };
}

/** Whether there is any sense in trying to connect. */
export function isWorthProbing(table: InstanceTable, subject: WhySubject): Instance | undefined {
  const [holder] = table.listNamed(subject.subdomain);
  const isAsked = subject.hash === undefined || holder?.hash === subject.hash;
  return holder && isAsked && isRoutable(holder) ? holder : undefined;
}
