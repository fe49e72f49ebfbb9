export {
  createFileAtomically,
  isMissing,
  loadOrCreateText,
  makeDirectory,
  readTextIfAny,
  renameDurably,
  syncDirectory,
  syncFile,
  writeFileAtomically,
} from './atomic-file.ts';
export { acquireLock, type Lock, type LockOptions } from './file-lock.ts';
export { createKeyFile, loadKeyFile, loadOrCreateKeyFile } from './key-file.ts';
export { linesBefore, openIfAny } from './lines-before.ts';
export { systemCodeOf } from './system-code.ts';
