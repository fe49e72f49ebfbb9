import { saysNothing } from '@skerry/client/says-nothing';

/** Whether a failure says nothing of what was to be checked: somebody did not answer, or what was signed is not at hand. */
export const isUnchecked = (failure: { readonly code: string }): boolean =>
  saysNothing(failure) || failure.code === 'CONTENT_NOT_FOUND';

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
