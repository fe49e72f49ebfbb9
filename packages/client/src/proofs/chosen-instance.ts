import { ANY_TIME, AppError, type InstanceView, proveInstance, verifyShared } from '@skerry/protocol';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { call } from '../call.ts';
import { checkAsked } from '../reads/asked.ts';
import type { SignedMessageSource } from '../signed-message.ts';

/** What the owner of an instance chose: it follows from what they signed alone, whoever runs the instance. */
export type ChosenField = 'owner' | 'name' | 'firewall';
const NOBODY: ReadonlySet<string> = new Set();

/**
 * An instance as a core node tells it, of which these fields are as its owner signed them; all else in it is the node's word. It does not
 * show that nothing newer was signed. What others signed for the owner does not count: that they may, this does not tell.
 *
 * @throws AppError UNEXPECTED_ANSWER where they do not follow from what the owner signed, and what `call` throws
 */
export async function readChosenInstance(
  { coreUrl, signal }: SignedMessageSource,
  instanceId: string,
  chosen: readonly ChosenField[],
): Promise<InstanceView> {
  const input = { params: { instance_id: instanceId }, query: { bodies: 'shared' } } as const;
  const told = await call(coreUrl, INSTANCES_API.getInstance, input, { signal });
  const { shared = [], ...view } = checkAsked(instanceId, 'instance_id', told);
  const refuse = (why: string, cause?: unknown) =>
    new AppError('UNEXPECTED_ANSWER', `${coreUrl} does not prove what it tells of ${instanceId}: ${why}`, {
      cause,
    });
  try {
    const own = shared.filter((text) => text !== null && verifyShared(text, ANY_TIME).sender === view.owner);
    const { differences } = proveInstance({ view, shared: own }, NOBODY);
    const wrong = differences.find(({ name }) => (chosen as readonly string[]).includes(name));
    if (!wrong) return view;
    const { name, said, computed } = wrong;
    throw refuse(`its ${name} is said to be ${said}, and its owner signed ${computed}`);
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'UNEXPECTED_ANSWER') throw error;
    throw refuse(error.message, error);
  }
}
