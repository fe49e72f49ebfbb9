/** Where the packages put things, and how they are started. */

import { ONE_V8_THREAD } from '@skerry/kit/threads';

/** The package of the command, as it is published, and what it needs. */
export const TREE = '/usr/lib/skerry';
export const NODE = `${TREE}/node`;
export const COMMAND = `${TREE}/bin/skerry.js`;
/** The gateway's native data plane, compiled when the package is built. */
export const NATIVE_PLANE = `${TREE}/native`;
/** Behind it come the words of the command. */
export const START = `${NODE} --disable-warning=ExperimentalWarning ${ONE_V8_THREAD} ${COMMAND}`;
/** What is called `skerry` on the path. */
export const LAUNCHER = `#!/bin/sh
exec ${START} "$@"
`;
export const UNITS = '/usr/lib/systemd/system';
export const SETTINGS = '/etc/skerry';

export const unitOf = (role: string) => `skerry-${role}.service`;
export const userOf = (role: string) => `skerry-${role}`;
export const settingsOf = (role: string) => `${SETTINGS}/${role}.env`;
const DATA = '/var/lib/skerry';
const CACHE = '/var/cache/skerry';
export const dataOf = (role: string) => `${DATA}/${role}`;
export const cacheOf = (role: string) => `${CACHE}/${role}`;
/** Above the directories of all roles: each user passes through them to its own. */
export const SHARED = [DATA, CACHE] as const;

/** What makes kit's paths (paths.ts) those of an installed daemon. */
export const homesOf = (role: string) => ({
  XDG_DATA_HOME: '/var/lib',
  XDG_CONFIG_HOME: '/etc',
  SKERRY_CACHE: cacheOf(role),
});
