import { AppError, type ConvertedMessage } from '@skerry/protocol';
import { WEBHOOKS_API } from '@skerry/protocol/api/core/webhooks';
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

/**
 * Messages to one node alone -> the operation that takes them: they are carried out there (the intake's `carryOut`), kept by
 * nobody and told to nobody.
 */
const PRIVATE = { WEBHOOK: WEBHOOKS_API.registerWebhook } as const;

export const PRIVATE_TYPES: readonly string[] = Object.keys(PRIVATE);

/** Throws UNKNOWN_MESSAGE_TYPE, with the route of the type, where messages are taken that everybody may see. */
export function checkPublic(type: string): void {
  if (!Object.hasOwn(PRIVATE, type)) return;
  const { method, path } = PRIVATE[type as keyof typeof PRIVATE];
  throw new AppError(
    'UNKNOWN_MESSAGE_TYPE',
    `this route takes no messages of type ${type}: send a registration to ${method} ${path}, and other requests to the routes below it`,
  );
}

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
