import { LIMITS, NODE_DRAINING, type Reason } from '@skerry/protocol';
import type { Node } from '../view.ts';
import { isPrivatePrefix, refusePrefix } from './prefix.ts';
import type { Trust } from './trust.ts';

/** What a node may be used for, and how good it is. */
export interface Standing {
  /** Why it gets nothing new, or null. */
  readonly unusable: Reason | null;
  /** Why what it holds should go elsewhere, or null. */
  readonly leaving: Reason | null;
  /** 0 to 1 as published; null where nobody has scored it. */
  readonly score: number | null;
  /** How far it is believed, in a sentence. */
  readonly trust: string;
  /** Whether its word frees the room of what it says can never start. Who has only the room that it earned would have room without end. */
  readonly isBelieved: boolean;
}

/** What is known of a node beside its announcement. */
export interface NodeFacts {
  /** For how long it does not prove its key, how, and whether nothing of it answers. */
  readonly outage:
    | { readonly lastedMs: number; readonly failure: string; readonly isSilent: boolean }
    | undefined;
  readonly proof: { readonly isKeyProved: boolean; readonly prefixFault: string | null };
  readonly trust: Trust;
  readonly isListed: boolean;
  /** The operator of the scheduler wants it empty. */
  readonly isDrained: boolean;
  /** It sent away what it held, or fell silent, more than once of late. */
  readonly isHeldBack: boolean;
  readonly score: number | null;
}

export interface StandingRules {
  /** How long a node may be out of reach before what it holds is placed elsewhere. */
  readonly graceMs: number;
  /** Nodes with a lower score get nothing new; those without a score do. */
  readonly scoreMin: number;
  /** Whether a private prefix (fc00::/7) is good enough at all, and of a node that is not listed. */
  readonly privatePrefixes: boolean;
  readonly allowPrivate: boolean;
  /** False while so much is out of reach that the scheduler itself may be cut off. */
  readonly mayDeclareDead: boolean;
}

const reasonOf = (code: string, message: string): Reason => ({
  code,
  message: message.slice(0, LIMITS.reasonChars),
});

/** Why what a node held was placed elsewhere: it was silent for longer than it may be. */
export const NODE_DEAD = 'NODE_DEAD';

const BY_OPERATOR = reasonOf(NODE_DRAINING, "the scheduler's operator is draining the node");

const HELD_BACK = reasonOf(
  'NODE_LEFT_OFTEN',
  'what the node held left it more than once of late: it sent it away, or fell silent; it gets something new after a while, an hour at most',
);

function unusableReason(node: Node, facts: NodeFacts, rules: StandingRules): Reason | null {
  if (facts.trust.against) return facts.trust.against;
  if (node.reason) return node.reason;
  if (facts.isDrained) return BY_OPERATOR;
  if (facts.isHeldBack) return HELD_BACK;
  if (node.ipv6Prefix === null)
    return reasonOf('NODE_WITHOUT_PREFIX', 'the node has no IPv6 network for instances');
  if (!rules.privatePrefixes && isPrivatePrefix(node.ipv6Prefix))
    return reasonOf('NODE_PREFIX_PRIVATE', `the node's IPv6 network ${node.ipv6Prefix} is private`);
  const refused = refusePrefix(node.ipv6Prefix, facts.isListed || rules.allowPrivate);
  if (refused) return refused;
  const unproved = unprovedReason(facts);
  if (unproved) return unproved;
  if (facts.score !== null && facts.score < rules.scoreMin)
    return reasonOf('NODE_SCORE_LOW', `the node's score is ${facts.score}, below ${rules.scoreMin}`);
  return null;
}

function unprovedReason({ outage, proof }: NodeFacts): Reason | null {
  if (outage) return reasonOf('NODE_UNREACHABLE', outage.failure);
  if (!proof.isKeyProved)
    return reasonOf('NODE_UNPROVED', 'the node has not yet proved that its key answers at its URL');
  if (proof.prefixFault !== null)
    return reasonOf('NODE_PREFIX_UNPROVED', `the node's IPv6 network is not proved: ${proof.prefixFault}`);
  return null;
}

/** Whether a node says that it wants to be empty. */
export const isDraining = ({ reason }: Node) => reason?.code === NODE_DRAINING;

function leavingReason(
  node: Node,
  facts: NodeFacts,
  { graceMs, mayDeclareDead }: StandingRules,
): Reason | null {
  if (isDraining(node)) return node.reason;
  if (facts.isDrained) return BY_OPERATOR;
  if (facts.outage?.isSilent && mayDeclareDead && facts.outage.lastedMs >= graceMs) {
    const minutes = Math.floor(facts.outage.lastedMs / 60_000);
    const long = minutes === 0 ? 'less than a minute' : minutes === 1 ? 'a minute' : `${minutes} minutes`;
    return reasonOf(NODE_DEAD, `unreachable for ${long}: ${facts.outage.failure}`);
  }
  return null;
}

/** Whether a node is of use now, and whether what it holds must go. */
export function decideStanding(node: Node, facts: NodeFacts, rules: StandingRules): Standing {
  return {
    unusable: unusableReason(node, facts, rules),
    leaving: leavingReason(node, facts, rules),
    score: facts.score,
    trust: facts.trust.words,
    isBelieved: facts.trust.room === null,
  };
}

const isSameReason = (a: Reason | null, b: Reason | null) => a?.code === b?.code && a?.message === b?.message;

export const isSameStanding = (a: Standing, b: Standing) =>
  isSameReason(a.unusable, b.unusable) &&
  isSameReason(a.leaving, b.leaving) &&
  a.score === b.score &&
  a.trust === b.trust &&
  a.isBelieved === b.isBelieved;
