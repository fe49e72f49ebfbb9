import { AppError, hasHostname, type InstanceView, prefixOfHostname } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { lookupDomain } from '../network/gateway.ts';
import { plainText, renderAge } from '../output/text.ts';
import { shortId } from './render.ts';

const FULL_ID = /^[0-9a-f]{64}$/i;

export const isFullId = (reference: string) => FULL_ID.test(reference);

const ID_PREFIX = /^[0-9a-f]{4,63}$/i;
const MATCHES_TOLD = 5;

/** The four words of a host name, with or without its domain; undefined where it is none. */
export function subdomainOf(text: string): string | undefined {
  const words = text.toLowerCase().split('.', 1)[0]!;
  try {
    prefixOfHostname(words);
    return words;
  } catch {
    return undefined;
  }
}

/** Those that a reference fits: by name if any, else by host name, else by the beginning of the id. */
export function matchInstances(instances: readonly InstanceView[], reference: string): InstanceView[] {
  const named = instances.filter((instance) => instance.name === reference);
  if (named.length > 0) return named;
  const words = subdomainOf(reference);
  if (words !== undefined) return instances.filter((instance) => hasHostname(instance.instance_id, words));
  if (!ID_PREFIX.test(reference)) return [];
  return instances.filter((instance) => instance.instance_id.startsWith(reference.toLowerCase()));
}

function ambiguous(reference: string, matches: readonly InstanceView[]): AppError {
  const now = Date.now() / 1000;
  const told = matches
    .slice(0, MATCHES_TOLD)
    .map(
      ({ instance_id: id, name, phase, created_at: created }) =>
        `${shortId(id)} (${plainText(name)}, ${phase}, ${renderAge(now - created)})`,
    );
  const more = matches.length > told.length ? `, and ${matches.length - told.length} more` : '';
  return new AppError('AMBIGUOUS_NAME', `${matches.length} instances match ${JSON.stringify(reference)}`, {
    details: {
      hint: `use an id: ${told.join(', ')}${more}`,
      matches: matches.map((instance) => instance.instance_id),
    },
  });
}

/**
 * The instance that a person means: by full id anybody's, by its four words anybody's that the gateway knows, by name or
 * the beginning of its id one of the person's own.
 *
 * @throws AppError INSTANCE_NOT_FOUND, AMBIGUOUS_NAME, KEY_NOT_FOUND (whose own?)
 */
export async function findInstance(context: Context, reference: string): Promise<InstanceView> {
  const { reader } = context;
  if (isFullId(reference)) return reader.getInstance(reference.toLowerCase());
  const words = subdomainOf(reference);
  const own = await findOwnInstances(context, words !== undefined);
  const matches = matchInstances(own, reference);
  if (matches.length > 1) throw ambiguous(reference, matches);
  if (matches[0] !== undefined) return matches[0];
  if (words !== undefined) return reader.getInstance(await findNamed(context, words));
  throw new AppError('INSTANCE_NOT_FOUND', `you have no instance ${JSON.stringify(reference)}`, {
    details: { hint: '"skerry instance list" shows your instances' },
  });
}

/** The id that a gateway has for four words. Throws UNEXPECTED_ANSWER where it is that of other words, which follow from the id. */
async function findNamed({ findService }: Context, words: string): Promise<string> {
  const url = await findService('gateway');
  const { instance_hash: id } = await lookupDomain(url, words);
  if (isFullId(id) && hasHostname(id, words)) return id.toLowerCase();
  throw new AppError('UNEXPECTED_ANSWER', `${url} tells of an instance that is not ${words}`);
}

/** @param optional whether it does without a key */
async function findOwnInstances(context: Context, optional: boolean): Promise<InstanceView[]> {
  try {
    const { address } = await context.loadSigner();
    return (await context.reader.readAllInstances({ address })).instances;
  } catch (error) {
    if (optional && error instanceof AppError && error.code === 'KEY_NOT_FOUND') return [];
    throw error;
  }
}
