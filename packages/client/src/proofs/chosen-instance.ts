import {
  ANY_TIME,
  AppError,
  type InstanceView,
  proveInstance,
  type VerifiedMessage,
  verifyShared,
} from '@skerry/protocol';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { call } from '../call.ts';
import { checkAsked } from '../reads/asked.ts';
import type { SignedMessageSource } from '../signed-message.ts';
import { readByHash, SOURCES_MAX } from './told-instance.ts';

/** What the owner of an instance chose: it follows from what they signed alone, whoever runs the instance. */
export type ChosenField = 'owner' | 'name' | 'firewall';
const NOBODY: ReadonlySet<string> = new Set();

/**
 * What was signed of an instance. The message that made it is read by itself where it is not among these: it is too long for them, or its
 * content is a file.
 */
async function readSigned(
  source: SignedMessageSource,
  hash: string,
  shared: readonly (string | null)[],
): Promise<VerifiedMessage[]> {
  const given = shared.flatMap((text) => (text === null ? [] : [verifyShared(text, ANY_TIME)]));
  if (given.some(({ itemHash, content }) => itemHash === hash && content !== null)) return given;
  return [...given, await readByHash(source, hash)];
}

/** What the instance follows from beside its own message, and is too long to be told with it. */
function readLong(
  source: SignedMessageSource,
  hash: string,
  shared: readonly (string | null)[],
  sources: readonly string[],
): Promise<VerifiedMessage[]> {
  const long = sources.filter((one, at) => one !== hash && shared[at] === null).slice(0, SOURCES_MAX);
  return Promise.all(long.map((one) => readByHash(source, one)));
}

/**
 * An instance as a core node tells it, of which these fields are as its owner signed them; all else in it is the node's word. It does not
 * show that nothing newer was signed. What others signed for the owner does not count: that they may, this does not tell.
 *
 * @throws AppError UNEXPECTED_ANSWER where they do not follow from what the owner signed, and what `call` throws
 */
export async function readChosenInstance(
  source: SignedMessageSource,
  instanceId: string,
  chosen: readonly ChosenField[],
): Promise<InstanceView> {
  const { coreUrl, signal } = source;
  const input = { params: { instance_id: instanceId }, query: { bodies: 'shared' } } as const;
  const told = await call(coreUrl, INSTANCES_API.getInstance, input, { signal });
  const { shared = [], sources = [], ...view } = checkAsked(instanceId, 'instance_id', told);
  const refuse = (why: string, cause?: unknown) =>
    new AppError('UNEXPECTED_ANSWER', `${coreUrl} does not prove what it tells of ${instanceId}: ${why}`, {
      cause,
    });
  const findWrong = (signed: readonly VerifiedMessage[]) => {
    const own = signed.filter(({ sender }) => sender === view.owner);
    const { differences } = proveInstance({ view, shared: own }, NOBODY);
    return differences.find(({ name }) => (chosen as readonly string[]).includes(name));
  };
  try {
    const signed = await readSigned(source, view.instance_id, shared);
    const wrong =
      findWrong(signed) &&
      findWrong([...signed, ...(await readLong(source, view.instance_id, shared, sources))]);
    if (!wrong) return view;
    const { name, said, computed } = wrong;
    throw refuse(`its ${name} is said to be ${said}, and its owner signed ${computed}`);
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'unavailable' || error.code === 'UNEXPECTED_ANSWER')
      throw error;
    throw refuse(error.message, error);
  }
}
