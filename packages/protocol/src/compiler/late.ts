import type * as schema from 'typebox/schema';
import type { Compile } from './compiler.ts';

/** Loaded with the first schema that is compiled: most commands and many a worker never check one. */
export const compile: Compile = (one) => {
  const { createRequire } = process.getBuiltinModule('node:module');
  const { Compile } = createRequire(import.meta.url)('typebox/schema') as typeof schema;
  return Compile(one);
};
