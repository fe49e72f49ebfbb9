import type { Role } from './processes/roles.ts';

/** What a node cannot do without among the files of its data directory, by what it is in the identity of a process. */
export const KEY_FILES = {
  node: 'node.key',
  sealing: 'sealing.key',
  vrf: 'vrf-keys.json',
} as const;

/** Not a key, but noted beside them: which directory of files the database goes with, by what is in this file of it. */
export const FILES_ID = 'files/store-id';

/** What the checks of keys and files go by. */
export interface KeySettings {
  readonly dataDir: string;
  readonly roles: readonly Role[];
  /** Names of KEY_FILES, or FILES_ID: made anew. */
  readonly lostKeys: readonly string[];
}

export type KeyName = keyof typeof KEY_FILES;

/** Whether a process with these roles works with a key: it has to be the same in all that do. */
export const isNeededBy = (roles: readonly Role[], key: KeyName): boolean =>
  roles.some((role) => role === 'answer' || role === (key === 'sealing' ? 'deliver' : 'write'));
