import { Compile } from 'typebox/schema';
import type * as port from './compiler.ts';

/** Where nothing can be loaded later without waiting: in browsers, and in what is bundled. */
export const compile: port.Compile = Compile;
