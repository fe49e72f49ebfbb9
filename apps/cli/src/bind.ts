import type { Context } from './context.ts';

/** Makes an action of a body that wants the context, its own options and its arguments. A number that it resolves with is the exit code. */
export type Bind = <Options, Arguments extends unknown[] = string[]>(
  body: (context: Context, options: Options, args: Arguments) => Promise<unknown>,
) => (...all: unknown[]) => Promise<void>;

/** Help text for one or two examples. */
export const examples = (...lines: string[]) =>
  `\nExample${lines.length > 1 ? 's' : ''}:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
