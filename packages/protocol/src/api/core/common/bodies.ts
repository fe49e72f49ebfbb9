import { Type } from '../../../type.ts';

/** Asks lists and events for what proves them. */
export const bodiesQuery = Type.Optional(
  Type.Literal('shared', {
    description:
      'each message also with `shared`: itself as nodes pass it on, so that its reader can check hash and signature',
  }),
);
