import { isPrivatePrefix } from './prefix.ts';

/** A node that is trusted or holds something, as this scheduler sees it now. */
export interface Sighting {
  readonly isInReach: boolean;
  /** The operator vouches for it: nobody else can make up such a node. */
  readonly isListed: boolean;
  /** The network that it proved; null where it proves none now. */
  readonly prefix: string | null;
}

/** What stands in the networks of two providers does not hang on one line. */
const PROVIDERS_MIN = 2;

/** Registries allocate up to a /29 to a provider that does not say why it needs more. */
const PROVIDER_MASK = 0xfff8;

/** The /29 of a network. @param prefix a /64 in its one spelling, which shortens the zeros at its end only */
function providerOf(prefix: string): string {
  const [first = '', second = ''] = prefix.split(':', 2);
  return `${first}:${(Number.parseInt(second || '0', 16) & PROVIDER_MASK).toString(16)}`;
}

const areMostLost = (nodes: readonly Sighting[]) =>
  2 * nodes.filter(({ isInReach }) => isInReach).length < nodes.length;

/** Whether the operator's own nodes show that this scheduler reaches the network: most answer, in networks of more than one provider. */
function isVouchedFor(listed: readonly Sighting[]): boolean {
  const providers = new Set<string>();
  for (const { isInReach, prefix } of listed)
    if (isInReach && prefix !== null && !isPrivatePrefix(prefix)) providers.add(providerOf(prefix));
  return providers.size >= PROVIDERS_MIN && !areMostLost(listed);
}

/**
 * Whether it is more likely that this scheduler is out of reach than that most nodes are. Anybody can have many nodes measured, and
 * let them fall silent together: listed ones outweigh them where they cannot all stand beside the scheduler, which would see
 * these alone if its own line failed. Pure.
 */
export const decideCutOff = (nodes: readonly Sighting[]): boolean =>
  areMostLost(nodes) && !isVouchedFor(nodes.filter(({ isListed }) => isListed));
