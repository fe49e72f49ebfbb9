import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { type Family, findAddresses, type MayReach } from '@skerry/kit';
import {
  isItemHash64,
  NODE_LIST_KEY,
  NODE_PROOF_PATH,
  nodeProofAddress,
  nodeProofUrl,
  parseIpv6Prefix,
  parseNodeUrl,
  programAddress,
  provesNode,
} from '@skerry/protocol';
import type { FindSystem } from '../asn.ts';
import type { MeasuredNode } from '../node-list.ts';
import { type Answer, type GetOptions, pick, readJson, Session } from './session.ts';

/** What the measurement of one node needs. */
export interface ProbeOptions {
  readonly mayReach: MayReach;
  readonly findSystem: FindSystem;
  /** The address whose aggregate is the node list, for the request that uses the database. */
  readonly aggregateOwner: string;
  /** The file of 6.7 kB that every core node has. */
  readonly referenceFile: string;
  /** The program that every compute node runs. */
  readonly diagnosticVm: string;
  /** 6 as the network measures compute nodes; 0 for networks without IPv6. */
  readonly computeFamily: 0 | 6;
  /** Names of node software in the `Server` header. */
  readonly software: readonly string[];
  readonly trusted?: SecureContext | undefined;
  /** Where a node's own address in its network is asked, without a slash at the end. */
  readonly proofUrlOf?: (pool: string) => string;
  readonly ping: (address: string, signal: AbortSignal) => Promise<number | undefined>;
  readonly pause: (milliseconds: number, signal: AbortSignal) => Promise<boolean>;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** A record as it is published; what failed is undefined and therefore left out. */
export type PublishedRecord = Readonly<Record<string, unknown>> & { readonly node_id: string };

/** Milliseconds (facts of deployed monitors). */
const TIMEOUT = { usual: 10_000, fullCheck: 20_000, about: 5_000, proof: 5_000 } as const;
/** The longest visit to a node that announced itself: what took longer is missing. */
export const VISIT_MS_MAX = 60_000;
/** A packet that was lost costs no hour. */
const PROOF_TRIES = 2;
const CHALLENGE_BYTES = 32;
const VERSION_WAITS_MS = [1_000, 2_000];
const VERSION = /^[\x21-\x7e]{1,64}$/;
const FEATURES_MAX = 16;
const FEATURE = /^[\x21-\x7e]{1,32}$/;

/** Which value is missing. Numbers that others read: never changed. */
const MEASUREMENT_CODES = {
  DNS_IPV4_FAIL: 2001,
  DNS_IPV6_FAIL: 2002,
  IPV4_CHECK_FAILED: 2003,
  IPV6_CHECK_FAILED: 2004,
  VERSION_UNAVAILABLE: 2005,
  DIAG_VM_UNREACHABLE: 2006,
  FULL_CHECK_FAILED: 2007,
  UNKNOWN_MEASUREMENT_ERROR: 2999,
} as const;

const usual = (expect = 200): GetOptions => ({ expect, timeoutMs: TIMEOUT.usual });
const anyStatus: GetOptions = { timeoutMs: TIMEOUT.usual };
const countOf = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined;
const versionOf = (value: unknown) => (typeof value === 'string' && VERSION.test(value) ? value : undefined);

async function locate(node: MeasuredNode, { mayReach, findSystem }: ProbeOptions) {
  const { hostname } = new URL(node.url);
  const first = async (family: Family) => (await findAddresses(hostname, family, mayReach))[0]?.address;
  const ipv4 = await first(4);
  const ipv6 = await first(6);
  const system = (ipv4 && findSystem(ipv4)) || (ipv6 && findSystem(ipv6)) || undefined;
  return { ipv4, ipv6, asn: system?.asn, as_name: system?.name ?? undefined };
}

const openSession = (node: MeasuredNode, family: Family, options: ProbeOptions) =>
  new Session({
    url: node.url,
    family,
    mayReach: options.mayReach,
    signal: options.signal,
    trusted: options.trusted,
  });

/** Requests to a core node, strictly one after another. A first one that is not measured opens each connection. */
async function measureCore(node: MeasuredNode, options: ProbeOptions): Promise<PublishedRecord> {
  const measured_at = options.now() / 1000;
  const place = await locate(node, options);
  const info = 'api/v0/info/public.json';
  const baseOf = async (family: Family) => {
    using session = openSession(node, family, options);
    if ((await session.get(info, usual())) === undefined) return undefined;
    return (await session.get(info, usual()))?.latency;
  };
  const base_latency_ipv4 = place.ipv4 === undefined ? undefined : await baseOf(4);
  const base_latency_ipv6 = place.ipv6 === undefined ? undefined : await baseOf(6);
  using session = openSession(node, 0, options);
  await session.get(info, usual());
  const metrics = await session.get('metrics.json', usual());
  const aggregate = await session.get(
    `api/v0/aggregates/${options.aggregateOwner}.json?keys=${NODE_LIST_KEY}&limit=50`,
    usual(),
  );
  const file = await session.get(`api/v0/storage/raw/${options.referenceFile}`, usual());
  const said = readJson(metrics);
  return {
    measured_at,
    node_id: node.nodeId,
    url: node.url,
    asn: place.asn,
    as_name: place.as_name,
    version: versionOf(pick(said, 'pyaleph_build_info', 'version')),
    base_latency: base_latency_ipv6 ?? base_latency_ipv4,
    base_latency_ipv4,
    metrics_latency: metrics?.latency,
    aggregate_latency: aggregate?.latency,
    file_download_latency: file?.latency,
    txs_total: countOf(pick(said, 'pyaleph_status_sync_pending_txs_total')),
    pending_messages: countOf(pick(said, 'pyaleph_status_sync_pending_messages_total')),
    eth_height_remaining: countOf(pick(said, 'pyaleph_status_chain_eth_height_remaining_total')),
  };
}

/** `skerry/1.0.0` in a `Server` header, where the software is one that is known. */
function serverVersionOf(answer: Answer | undefined, software: readonly string[]): string | undefined {
  for (const product of String(answer?.headers.server ?? '').split(/[\s,]+/)) {
    const at = product.indexOf('/');
    if (at > 0 && software.includes(product.slice(0, at).toLowerCase()))
      return versionOf(product.slice(at + 1));
  }
  return undefined;
}

async function readVersion(node: MeasuredNode, options: ProbeOptions): Promise<string | undefined> {
  using session = openSession(node, 0, options);
  for (const waitMs of [0, ...VERSION_WAITS_MS]) {
    if (waitMs > 0 && !(await options.pause(waitMs, options.signal))) return undefined;
    const version = serverVersionOf(await session.get('', anyStatus), options.software);
    if (version !== undefined) return version;
  }
  return undefined;
}

function poolOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  try {
    return parseIpv6Prefix(value);
  } catch {
    return undefined;
  }
}

/**
 * One echo to the diagnostic program's machine, whose address follows from the network that the node says its machines
 * are in; of a node that says none, from the node's own address.
 */
async function pingMachine(
  pool: string | undefined,
  nodeIpv6: string | undefined,
  { diagnosticVm, mayReach, ping, signal }: ProbeOptions,
): Promise<number | undefined> {
  const network = pool?.replace(/\/.*$/, '') ?? nodeIpv6;
  if (network === undefined) return undefined;
  const target = programAddress(network, diagnosticVm);
  return mayReach(target) ? ping(target, signal) : undefined;
}

const featuresOf = (value: unknown) =>
  Array.isArray(value)
    ? value.slice(0, FEATURES_MAX).filter((one) => typeof one === 'string' && FEATURE.test(one))
    : [];

type Announced = MeasuredNode & { readonly address: string };
const isAnnounced = (node: MeasuredNode): node is Announced => node.address !== undefined;

interface Asked {
  readonly status: number;
  readonly isProof: boolean;
  /** The address that answered. */
  readonly from: string | undefined;
}

/** Asks for a proof of the key that announced the node, at a place, with a challenge that was never used. */
async function askProof(
  session: Session,
  place: string,
  { nodeId, address }: Announced,
): Promise<Asked | undefined> {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  const path = `${NODE_PROOF_PATH.slice(1)}?challenge=${challenge}`;
  const answer = await session.get(path, { timeoutMs: TIMEOUT.proof });
  if (answer === undefined) return undefined;
  const { status, body, from } = answer;
  return { status, isProof: status === 200 && provesNode(body, { nodeId, place, challenge }, address), from };
}

interface Presence {
  /** Whether it is measured. */
  readonly isThere: boolean;
  /** The address at which the key that announced the node answered. */
  readonly provedAt?: string | undefined;
}

/**
 * Whether the key that announced the node answers at its URL. A node from before proofs (404) is measured without. No answer
 * is none to any other question either, so that silent nodes take little time.
 */
async function findAtItsUrl(node: MeasuredNode, options: ProbeOptions): Promise<Presence> {
  if (!isAnnounced(node)) return { isThere: true };
  using session = openSession(node, 0, options);
  for (let tries = 0; tries < PROOF_TRIES; tries++) {
    const asked = await askProof(session, parseNodeUrl(node.url), node);
    if (asked?.isProof) return { isThere: true, provedAt: asked.from };
    if (asked) return { isThere: asked.status === 404 };
  }
  return { isThere: false };
}

/**
 * The autonomous system of a compute node. A name says now one address and now another, so of an announced node only one at which its key
 * answered counts.
 */
function systemOf(
  node: MeasuredNode,
  place: Awaited<ReturnType<typeof locate>>,
  provedAt: readonly (string | false | undefined)[],
  { findSystem }: ProbeOptions,
) {
  if (!isAnnounced(node)) return { asn: place.asn, as_name: place.as_name };
  for (const address of provedAt) {
    const system = address ? findSystem(address) : undefined;
    if (system) return { asn: system.asn, as_name: system.name ?? undefined };
  }
  return {};
}

/** Whether the key answers at its own address in the network that the node says: anybody can say another's. Undefined where it does not. */
async function provesPool(
  pool: string | undefined,
  node: MeasuredNode,
  { proofUrlOf = nodeProofUrl, mayReach, signal }: ProbeOptions,
): Promise<true | undefined> {
  if (pool === undefined || !isAnnounced(node)) return undefined;
  using session = new Session({ url: `${proofUrlOf(pool)}/`, family: 6, mayReach, signal });
  const asked = await askProof(session, nodeProofAddress(pool), node);
  return asked?.isProof || undefined;
}

/** The same of an IPv4 address: a name may lead to another's. @param session over IPv4 */
async function provesIpv4(
  ipv4: string | undefined,
  node: MeasuredNode,
  session: Session,
): Promise<true | undefined> {
  if (ipv4 === undefined || !isAnnounced(node)) return undefined;
  const asked = await askProof(session, parseNodeUrl(node.url), node);
  return (asked?.isProof && asked.from === ipv4) || undefined;
}

/** The record of a node that does not answer, or of an answer that is another's: it must not pass for the other. */
const silentRecord = (node: MeasuredNode, measured_at: number): PublishedRecord => ({
  measured_at,
  node_id: node.nodeId,
  url: node.url,
  codes: [
    MEASUREMENT_CODES.IPV4_CHECK_FAILED,
    MEASUREMENT_CODES.IPV6_CHECK_FAILED,
    MEASUREMENT_CODES.VERSION_UNAVAILABLE,
    MEASUREMENT_CODES.DIAG_VM_UNREACHABLE,
    MEASUREMENT_CODES.FULL_CHECK_FAILED,
  ],
});

/** Requests to a compute node, strictly one after another: over IPv6, and one of them again over IPv4. */
async function measureCompute(node: MeasuredNode, options: ProbeOptions): Promise<PublishedRecord> {
  const measured_at = options.now() / 1000;
  const { isThere, provedAt } = await findAtItsUrl(node, options);
  if (!isThere) return silentRecord(node, measured_at);
  const place = await locate(node, options);
  const version = await readVersion(node, options);
  using session = openSession(node, options.computeFamily, options);
  await session.get('', anyStatus);
  const base = await session.get('about/login', usual(401));
  const vm = await session.get(`vm/${options.diagnosticVm}`, usual());
  const full = await session.get('status/check/fastapi', { expect: 200, timeoutMs: TIMEOUT.fullCheck });
  const about: GetOptions = { expect: 200, timeoutMs: TIMEOUT.about };
  const usage = readJson(await session.get('about/usage/system', about));
  const config = readJson(await session.get('status/config', about));
  const said = pick(config, 'node_hash');
  const claimed = typeof said === 'string' && isItemHash64(said) ? said : undefined;
  if (claimed !== undefined && claimed !== node.nodeId) return silentRecord(node, measured_at);
  const ipv6_pool = poolOf(pick(config, 'networking', 'IPV6_ADDRESS_POOL'));
  const ipv6_pool_proved = await provesPool(ipv6_pool, node, options);
  const pinged = vm ? await pingMachine(ipv6_pool, place.ipv6, options) : undefined;
  using fourth = openSession(node, 4, options);
  await fourth.get('', anyStatus);
  const base4 = await fourth.get('about/login', usual(401));
  const ipv4_proved = await provesIpv4(place.ipv4, node, fourth);
  const missing: [unknown, number][] = [
    [place.ipv4, MEASUREMENT_CODES.DNS_IPV4_FAIL],
    [place.ipv6, MEASUREMENT_CODES.DNS_IPV6_FAIL],
    [base4, MEASUREMENT_CODES.IPV4_CHECK_FAILED],
    [base, MEASUREMENT_CODES.IPV6_CHECK_FAILED],
    [version, MEASUREMENT_CODES.VERSION_UNAVAILABLE],
    [vm, MEASUREMENT_CODES.DIAG_VM_UNREACHABLE],
    [full, MEASUREMENT_CODES.FULL_CHECK_FAILED],
  ];
  const codes = missing.flatMap(([value, code]) => (value === undefined ? [code] : []));
  return {
    measured_at,
    node_id: node.nodeId,
    url: node.url,
    ...systemOf(node, place, [ipv4_proved && place.ipv4, provedAt], options),
    version,
    features: featuresOf(pick(usage, 'properties', 'cpu', 'features')),
    base_latency: base?.latency,
    base_latency_ipv4: base4?.latency,
    diagnostic_vm_latency: vm?.latency,
    full_check_latency: full?.latency,
    diagnostic_vm_ping_latency: pinged,
    ipv4: place.ipv4,
    ipv4_proved,
    ipv6: place.ipv6,
    ipv6_pool,
    ipv6_pool_proved,
    config_node_hash: claimed,
    ...(codes.length > 0 ? { codes } : {}),
  };
}

/** A node's record, also of one that made the monitor itself fail. */
export async function measureNode(node: MeasuredNode, given: ProbeOptions): Promise<PublishedRecord> {
  const signal =
    node.address === undefined
      ? given.signal
      : AbortSignal.any([given.signal, AbortSignal.timeout(VISIT_MS_MAX)]);
  const options = { ...given, signal };
  try {
    return await (node.kind === 'core' ? measureCore(node, options) : measureCompute(node, options));
  } catch {
    const codes = [MEASUREMENT_CODES.UNKNOWN_MEASUREMENT_ERROR];
    return { measured_at: options.now() / 1000, node_id: node.nodeId, url: node.url, codes };
  }
}
