import type { TSchema } from 'typebox';

export interface Validator {
  Check(value: unknown): boolean;
  Errors(value: unknown): [boolean, object[]];
}

/** What compiles plain JSON Schema: `typebox/schema`, a third of `typebox/compile`'s modules. */
export type Compile = (schema: TSchema) => Validator;
