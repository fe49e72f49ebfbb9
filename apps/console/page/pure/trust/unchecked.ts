/** Codes by which nothing was found out: somebody did not answer, what was signed is not at hand, or something of this page failed. */
const UNCHECKED: ReadonlySet<string> = new Set([
  ...['UPSTREAM_UNAVAILABLE', 'OVERLOADED', 'RATE_LIMITED', 'SHUTTING_DOWN', 'ROLE_ELSEWHERE'],
  ...[
    'DATABASE_UNAVAILABLE',
    'STORAGE_UNAVAILABLE',
    'IPFS_UNAVAILABLE',
    'TIMED_OUT',
    'INTERNAL',
    'CONTENT_NOT_FOUND',
  ],
]);

/** Whether a failure says nothing of what was to be checked. */
export const isUnchecked = ({ code }: { readonly code: string }): boolean => UNCHECKED.has(code);

type Checked =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'proven'; readonly value: { readonly contradictions: readonly unknown[] } }
  | { readonly kind: 'failed'; readonly failure: { readonly code: string } };

/**
 * What checking a message came to. Nobody is said to have lied because a node did not answer.
 * @param status of the message, by the core node's word
 */
export function verdictOn(
  proof: Checked,
  status: string,
): 'waiting' | 'proven' | 'refuted' | 'gone' | 'unchecked' {
  if (proof.kind === 'waiting') return 'waiting';
  if (proof.kind === 'proven') return proof.value.contradictions.length === 0 ? 'proven' : 'refuted';
  if (status === 'forgotten') return 'gone';
  return isUnchecked(proof.failure) ? 'unchecked' : 'refuted';
}
