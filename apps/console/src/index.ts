export { answerWith } from './answer.ts';
export { buildConsole } from './build.ts';
export { type Console, openConsole } from './console.ts';
export type { ConsoleFile } from './files.ts';
