import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceAll } from '../../guides/follow.ts';
import { ROOT } from '../../source.ts';

export const GUIDE = 'high-availability.md';
const PAGE = `docs/${GUIDE}`;
/** What the soak follows. */
export const SECTIONS = {
  save: 'Save the database',
  restore: 'Restore it after the loss of all three',
} as const;
/** Addresses of the page are for examples; in the soak each server has its own of the loopback. */
const NETWORK = { page: '192.0.2.', here: '127.70.0.' };
/** The packets of the loopback have an address of their own. */
const SOURCES = { page: '192.0.2.0/24', here: '127.0.0.0/8' };

export const NAMES = ['one', 'two', 'three'] as const;
export type Name = (typeof NAMES)[number];
export const addressOf = (name: Name) => `${NETWORK.here}${NAMES.indexOf(name) + 1}`;

const readPage = () => readFileSync(join(ROOT, PAGE), 'utf8');

/** The page's block that has this line. */
function blockWith(line: string): string {
  const blocks = [...readPage().matchAll(/^```[a-z]+\n([\s\S]*?)^```$/gm)].map(([, text]) => text!);
  const found = blocks.filter((text) => text.split('\n').includes(line));
  assert.equal(found.length, 1, `${PAGE} has ${found.length} blocks with the line ${line}`);
  return found[0]!.replaceAll(SOURCES.page, SOURCES.here).replaceAll(NETWORK.page, NETWORK.here);
}

/** What a block writes to a file. @param end of the file, as the shell is told it */
function fileIn(path: string, end = 'END'): string {
  const line = `cat > ${path} <<${end}`;
  return blockWith(line).split(`${line}\n`)[1]!.split('END\n')[0]!;
}

/** The same of a server. */
const fileOf = (path: string, name: Name): string =>
  fileIn(path).replaceAll('$NAME', name).replaceAll('$HERE', addressOf(name));

/** The settings of etcd, as its environment. */
export const etcdSettings = (name: Name, directory: string): Record<string, string> =>
  Object.fromEntries(
    fileOf('/etc/default/etcd', name)
      .replace('/var/lib/etcd/skerry', directory)
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );

export const ARCHIVE_WAL = '/usr/local/bin/pgbackrest-archive';

/** The paths of the page that belong to a server, and what has their place below its directory. */
export const pathsOf = (directory: string): Record<string, string> => ({
  '/var/lib/postgresql/15/skerry': `${directory}/data`,
  '/var/lib/postgresql/pgpass': `${directory}/pgpass`,
  '/var/run/postgresql': directory,
  '/run/postgresql': directory,
  '/etc/patroni/config.yml': `${directory}/patroni.yml`,
  '/etc/pgbackrest.conf': `${directory}/pgbackrest.conf`,
  [ARCHIVE_WAL]: `${directory}/pgbackrest-archive`,
});

/** The configuration of Patroni. @param directory of the server's data, sockets and passwords */
export function patroniConfig(name: Name, directory: string, isSynchronous: boolean): string {
  const config = fileOf('/etc/patroni/config.yml', name).replaceAll(
    /(synchronous_mode\w*): true/g,
    `$1: ${isSynchronous}`,
  );
  return replaceAll(config, Object.entries(pathsOf(directory)));
}

/** The same with an archive. */
export function archivingConfig(config: string, directory: string): string {
  const block = replaceAll(blockWith("    archive_mode: 'on'"), Object.entries(pathsOf(directory)));
  return config.replace(/^ {2}parameters: .*\n$/m, () => block);
}

/** What saves a file of the write-ahead log. */
export const archiveScript = (): string => fileIn(ARCHIVE_WAL, "'END'");

/** Where the programs of a server find their configuration of pgBackRest; it writes no log of its own. @param directory of the server */
export const archiveSettings = (directory: string): Record<string, string> => ({
  PGBACKREST_CONFIG: `${directory}/pgbackrest.conf`,
  PGBACKREST_LOG_LEVEL_FILE: 'off',
});

/** What makes the database. */
export const databaseStatements = (): string[] =>
  blockWith("create role skerry login password 'PASSWORD4';").trim().split('\n');

/** The configuration of HAProxy. */
export const haproxyConfig = (): string => fileIn('/etc/haproxy/haproxy.cfg');

/** How a core process reaches the database: all servers named, or the HAProxy of its machine. */
export const WAYS = ['hosts', 'HAProxy'] as const;
export type Way = (typeof WAYS)[number];

const URLS: Readonly<Record<Way, string>> = {
  hosts: 'SKERRY_CORE_DATABASE_URL=postgresql://skerry:PASSWORD4@192.0.2.1,192.0.2.2,192.0.2.3/skerry',
  HAProxy: 'SKERRY_CORE_DATABASE_URL=postgresql://skerry:PASSWORD4@127.0.0.1:5000/skerry',
};

export const databaseUrl = (way: Way = 'hosts'): string =>
  blockWith(URLS[way]).trim().slice('SKERRY_CORE_DATABASE_URL='.length);

/** What the page gives the core processes to do; those that answer first. */
export function coreRoles(): { readonly answer: string; readonly write: string } {
  const lists = [...readPage().matchAll(/SKERRY_CORE_ROLES=([a-z,]+)/g)].map(([, list]) => list!);
  const find = (role: string) => {
    const found = new Set(lists.filter((list) => list.split(',').includes(role)));
    assert.equal(found.size, 1, `${PAGE} gives ${role} in ${found.size} ways`);
    return [...found][0]!;
  };
  return { answer: find('answer'), write: find('write') };
}
