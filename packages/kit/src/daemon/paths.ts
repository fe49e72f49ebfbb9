import { homedir } from 'node:os';
import { join } from 'node:path';

export interface SkerryPaths {
  /** What must not be lost: databases, disks of instances, identities of nodes. */
  readonly data: string;
  /** What can be made again: images. */
  readonly cache: string;
  /** Keys and preferences of the person. */
  readonly config: string;
}

/** Where things live on this machine (XDG base directories), or all below `SKERRY_HOME` where that is set. */
export function skerryPaths(environment: Readonly<Record<string, string | undefined>>): SkerryPaths {
  const home = environment.SKERRY_HOME;
  if (home)
    return {
      data: join(home, 'data'),
      cache: environment.SKERRY_CACHE || join(home, 'cache'),
      config: join(home, 'config'),
    };
  const base = (variable: string, fallback: string) =>
    join(environment[variable] || join(homedir(), fallback), 'skerry');
  return {
    data: base('XDG_DATA_HOME', '.local/share'),
    cache: environment.SKERRY_CACHE || base('XDG_CACHE_HOME', '.cache'),
    config: base('XDG_CONFIG_HOME', '.config'),
  };
}
