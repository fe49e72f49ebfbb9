export { answerWith } from './answer.ts';
export { buildConsole } from './build.ts';
export { type Console, namedBuild, openConsole } from './console.ts';
export { type ConsoleFile, PAGE_FILE } from './files.ts';
export { buildOfSums, checksumsOf } from './hashes.ts';
export { CHECKSUMS, parseChecksums, SIGNATURE, signedTextOf, signerOf } from './signed-list.ts';
