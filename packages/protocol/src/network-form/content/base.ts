import { OnBehalfOf, PRINTABLE } from '../../content/on-behalf.ts';
import { type TSchema, Type } from '../../type.ts';
import { ANY_HASH_PATTERN } from '../item-hash.ts';

/** Pieces of the contents of the network form. Limits are the ones that deployed nodes have (docs/wire-forms.md). */

export const strict = { additionalProperties: false } as const;

/** Left out or null: SDKs write both. */
export const Maybe = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** What every content has: whose it is and when it was made. */
export const head = {
  address: OnBehalfOf,
  time: Type.Number({ minimum: 0, maximum: 9_223_372_036, description: 'Unix seconds, with fraction' }),
};

/** Names a message or a file. */
export const AnyHash = Type.String({ pattern: ANY_HASH_PATTERN });

export const Label = Type.String({ maxLength: 256, pattern: PRINTABLE });
/** Free text that only people read. */
export const Text = Type.String({ maxLength: 1024 });

export const FreeObject = Type.Record(Type.String(), Type.Unknown(), { maxProperties: 256 });

export const oneOf = <const T extends readonly string[]>(...values: T) =>
  Type.Unsafe<T[number]>(Type.Enum([...values]));

/** How a VM or a file is paid for. Kept and shown; nothing here charges by it. */
export const paymentBy = <const T extends readonly string[]>(...types: T) =>
  Type.Object(
    {
      chain: Maybe(Type.String({ maxLength: 16 })),
      receiver: Maybe(Type.String({ maxLength: 128 })),
      type: Maybe(oneOf(...types)),
    },
    strict,
  );
