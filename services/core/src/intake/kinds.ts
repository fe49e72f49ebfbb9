import type { ConvertedMessage } from '@skerry/protocol';
import type { Kind } from './accepted.ts';
import type { Effect } from './effect.ts';
import { aggregate } from './kinds/aggregate.ts';
import { forget } from './kinds/forget.ts';
import { instance } from './kinds/instance.ts';
import { instanceControl } from './kinds/instance-control.ts';
import { instanceUpdate } from './kinds/instance-update.ts';
import { ipfsPin } from './kinds/ipfs-pin.ts';
import { post } from './kinds/post.ts';
import { program } from './kinds/program.ts';
import { store } from './kinds/store.ts';

/** Contents of the network form become those of the envelope form, which the kinds take. */
type OfBothForms = {
  readonly [T in ConvertedMessage['type']]: Kind<Extract<ConvertedMessage, { type: T }>['content']>;
};

/** Message type -> what it means. */
const KINDS = {
  POST: post,
  STORE: store,
  AGGREGATE: aggregate,
  FORGET: forget,
  PROGRAM: program,
  INSTANCE: instance,
  INSTANCE_UPDATE: instanceUpdate,
  INSTANCE_CONTROL: instanceControl,
  IPFS_PIN: ipfsPin,
} satisfies OfBothForms & Record<string, Kind<unknown>>;

export const MESSAGE_TYPES: readonly string[] = Object.keys(KINDS);

/** Messages to one node alone: carried out there (the intake's `carryOut`), kept by nobody and told to nobody. */
export const PRIVATE_TYPES: readonly string[] = ['WEBHOOK'];

/** undefined: the type is unknown, or private. */
export const findKind = (type: string): Kind<unknown> | undefined =>
  Object.hasOwn(KINDS, type) ? KINDS[type as keyof typeof KINDS] : undefined;

/** Everything that messages of any type may do. */
export const EFFECTS: readonly Effect<unknown>[] = [
  ...new Set(MESSAGE_TYPES.flatMap((type) => findKind(type)!.effects)),
];

/** The types whose messages may do this, or have this property. */
export const typesWith = (property: Effect<unknown> | 'hangsOnCredit'): readonly string[] =>
  MESSAGE_TYPES.filter((type) => {
    const kind = findKind(type)!;
    return property === 'hangsOnCredit' ? kind.hangsOnCredit : kind.effects.includes(property);
  });
