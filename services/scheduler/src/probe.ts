import { randomBytes } from 'node:crypto';
import { type Answered, AskError, type Asker } from '@skerry/kit';
import {
  fieldsOf,
  NODE_PROOF_BYTES_MAX,
  NODE_PROOF_PATH,
  nodeProofAddress,
  nodeProofUrl,
  provesNode,
} from '@skerry/protocol';
import type { Node } from './view.ts';

/** Where nodes from before proofs say who they are (`node_hash`). */
const CONFIG_PATH = '/status/config';
const PROBE_TIMEOUT_MS = 2_000;
/** Real answers are about 2 KiB. */
const CONFIG_BYTES_MAX = 64 * 1024;
const CHALLENGE_BYTES = 32;

/** Why a node did not prove what it was asked to. */
export interface Fault {
  readonly message: string;
  /** Nothing of the node answers there: after a while it counts as dead. */
  readonly isSilent: boolean;
}

/** What came of a probe; null where it was proved, undefined where it was not asked for. */
export interface Findings {
  readonly key: Fault | null;
  readonly prefix: Fault | null | undefined;
}

export type Claimant = Pick<Node, 'nodeId' | 'address' | 'url' | 'ipv6Prefix'>;

export interface ProbeOptions {
  readonly asker: Asker;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Whether what went wrong is told; of a stranger's address nothing is, or it could look around in our network through us. */
  readonly isTold: boolean;
}

const silent = (message: string): Fault => ({ message, isSilent: true });

function askAt(base: string, path: string, bodyBytesMax: number, options: ProbeOptions): Promise<Answered> {
  const { asker, signal, timeoutMs = PROBE_TIMEOUT_MS } = options;
  const headers = { accept: 'application/json' };
  return asker.ask(`${base}${path}`, { headers, bodyBytesMax, timeoutMs, signal });
}

/** Whether a node that has no such path says at least that it is the one. */
async function saysItsName(node: Claimant, options: ProbeOptions): Promise<boolean> {
  try {
    const { status, body } = await askAt(node.url, CONFIG_PATH, CONFIG_BYTES_MAX, options);
    return status === 200 && fieldsOf(JSON.parse(body.toString('utf8'))).node_hash === node.nodeId;
  } catch {
    return false;
  }
}

/** Asks for a proof at a place, with a challenge that was never used. @returns the answer's status, or null for a proof */
async function askProof(
  node: Claimant,
  base: string,
  place: string,
  options: ProbeOptions,
): Promise<Fault | number | null> {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  try {
    const path = `${NODE_PROOF_PATH}?challenge=${challenge}`;
    const { status, body } = await askAt(base, path, NODE_PROOF_BYTES_MAX, options);
    if (status !== 200) return status;
    const isProved = provesNode(body, { nodeId: node.nodeId, place, challenge }, node.address);
    return isProved ? null : silent(`the answer from ${place} does not prove that it is this node`);
  } catch (error) {
    options.signal.throwIfAborted();
    return silent(error instanceof AskError ? `${place}: ${error.message}` : `${place} may not be contacted`);
  }
}

async function probeKey(node: Claimant, options: ProbeOptions): Promise<Fault | null> {
  const found = await askProof(node, node.url, node.url, options);
  if (typeof found !== 'number') return found;
  const isSilent = found !== 429 && !(found === 404 && (await saysItsName(node, options)));
  return { message: `the node returned ${found} for ${NODE_PROOF_PATH}`, isSilent };
}

async function probePrefix(node: Claimant, prefix: string, options: ProbeOptions): Promise<Fault | null> {
  const found = await askProof(node, nodeProofUrl(prefix), nodeProofAddress(prefix), options);
  return typeof found === 'number' ? silent(`${nodeProofAddress(prefix)} returned ${found}`) : found;
}

/** What a stranger is told, whatever went wrong. */
const KEY_UNTOLD = `no proof of the node's key from its URL (GET ${NODE_PROOF_PATH} there, at a public address, in ${PROBE_TIMEOUT_MS} ms, without a redirect)`;
const PREFIX_UNTOLD = "no proof of the node's key from its address in its announced IPv6 network";

/**
 * Has a node prove that its key answers at its URL and, if asked, at its address inside its prefix. Both are a stranger's word:
 * the asker decides where may be asked, and nothing of the answer is passed on.
 */
export async function probeNode(
  node: Claimant,
  asksPrefix: boolean,
  options: ProbeOptions,
): Promise<Findings> {
  const untold = (fault: Fault | null, message: string) =>
    fault === null || options.isTold ? fault : { ...fault, message };
  const { ipv6Prefix } = node;
  const [key, prefix] = await Promise.all([
    probeKey(node, options),
    asksPrefix && ipv6Prefix !== null ? probePrefix(node, ipv6Prefix, options) : undefined,
  ]);
  return {
    key: untold(key, KEY_UNTOLD),
    prefix: prefix === undefined ? undefined : untold(prefix, PREFIX_UNTOLD),
  };
}
