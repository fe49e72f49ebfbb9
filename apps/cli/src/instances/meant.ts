import { type ChosenField, readChosenInstance } from '@skerry/client';
import { AppError, hasHostname, type InstanceView, normaliseAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { findInstance, isFullId, matchInstances, subdomainOf } from './find.ts';

/** Whether a reference says which instance it is by itself: the four words are of its id. */
function isNamedById(reference: string, { instance_id: id }: InstanceView): boolean {
  const words = subdomainOf(reference);
  return isFullId(reference) || (words !== undefined && hasHostname(id, words));
}

/** Throws UNEXPECTED_ANSWER with a way out of it. */
async function readProven(
  { coreUrl }: Pick<Context, 'coreUrl'>,
  { instance_id: id }: InstanceView,
  { chosen, hint }: { readonly chosen: readonly ChosenField[]; readonly hint: string },
): Promise<InstanceView> {
  try {
    return await readChosenInstance({ coreUrl }, id, chosen);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'UNEXPECTED_ANSWER') throw error;
    throw new AppError(error.code, error.message, { cause: error, details: { hint } });
  }
}

/**
 * The instance that something is signed for, where a person names it: one of their own, that has this name by what they signed, or the
 * beginning of this id, whatever the core node says. With its full id, or the four words, it is anybody's.
 *
 * @throws AppError UNEXPECTED_ANSWER where that is not proven, and what `findInstance` throws
 */
export async function findMeant(context: Context, reference: string): Promise<InstanceView> {
  const found = await findInstance(context, reference);
  if (isNamedById(reference, found)) return found;
  const hint = 'nothing was signed; use its full id, which "skerry instance list --json" tells';
  // The beginning of an id is in the id that was asked for: it takes no proof, and a name that a delegate gave has none.
  const isNamed = found.name === reference;
  const proven = await readProven(context, found, { chosen: isNamed ? ['owner', 'name'] : ['owner'], hint });
  const { address } = await context.loadSigner();
  if (
    normaliseAddress(proven.owner) === normaliseAddress(address) &&
    (!isNamed || matchInstances([proven], reference).length === 1)
  )
    return proven;
  throw new AppError(
    'UNEXPECTED_ANSWER',
    `${context.coreUrl} tells of ${proven.instance_id}, which is no instance of yours named ${JSON.stringify(reference)}`,
    { details: { hint } },
  );
}

/** The same where what its owner signed last of the firewall is signed again, however it was named. */
export async function findMeantWithFirewall(context: Context, reference: string): Promise<InstanceView> {
  const found = await findMeant(context, reference);
  const hint =
    'nothing was signed; give --allow, and --proxy-protocol or --no-proxy-protocol, so that nothing is kept';
  return readProven(context, found, { chosen: ['owner', 'firewall'], hint });
}
