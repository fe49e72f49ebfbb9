import { ANY_TIME } from '../effective-time.ts';
import type { VerifiedMessage } from '../envelope.ts';
import { AppError } from '../errors.ts';
import { canonicalJson } from '../json/canonical.ts';
import { verifyShared } from '../sync/shared.ts';
import { foldAll } from './fold.ts';
import { readInstanceMessage } from './read.ts';
import { instanceViewOf } from './view.ts';

/** An instance as a core node tells it, with the signed messages that it follows from (`bodies=shared`). */
export interface ToldInstance {
  readonly view: { readonly instance_id: string };
  /** As nodes pass them on, or verified already. null: the node does not give this one. */
  readonly shared: readonly (string | VerifiedMessage | null)[];
}

/** A field that does not follow from the messages. Both as JSON. */
export interface InstanceDifference {
  readonly name: string;
  readonly said: string;
  readonly computed: string;
}

export interface InstanceVerdict {
  /** Messages whose hash and signature were checked. */
  readonly verified: number;
  /** Whether all messages were given: otherwise nothing was compared. */
  readonly isWhole: boolean;
  readonly differences: readonly InstanceDifference[];
  /** Who spoke for the owner without being the owner. Whether they may, these messages do not tell. */
  readonly onBehalf: readonly string[];
}

/**
 * Folds an instance out of its signed messages and compares it with what a node tells. It does not show that there are no newer
 * messages. Throws AppError for a text that nobody signed, and where none of them makes this instance.
 *
 * @param schedulers addresses whose allocations count
 */
export function proveInstance(
  { view, shared }: ToldInstance,
  schedulers: ReadonlySet<string>,
): InstanceVerdict {
  const messages = shared.flatMap((one) =>
    one === null ? [] : [typeof one === 'string' ? verifyShared(one, ANY_TIME) : one],
  );
  const about = messages.flatMap((message) => {
    const read = readInstanceMessage(message);
    return read?.instanceId === view.instance_id ? [{ ...read, sender: message.sender }] : [];
  });
  const state = foldAll(
    about.map(({ fold }) => fold),
    schedulers,
  );
  const onBehalf = about.flatMap(({ isOwners, sender }) =>
    isOwners && sender !== state?.owner ? [sender] : [],
  );
  const verdict = { verified: messages.length, onBehalf: [...new Set(onBehalf)] };
  if (shared.includes(null)) return { ...verdict, isWhole: false, differences: [] };
  if (!state)
    throw new AppError('INVALID_CONTENT', `none of the messages makes the instance ${view.instance_id}`);
  const told: Readonly<Record<string, unknown>> = { ...view };
  const differences = Object.entries(instanceViewOf(state)).flatMap(([name, value]) => {
    const [said, computed] = [canonicalJson(told[name] ?? null), canonicalJson(value)];
    return said === computed ? [] : [{ name, said, computed }];
  });
  return { ...verdict, isWhole: true, differences };
}
