import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@skerry/kit/testing/until';
import pg from 'pg';
import { run } from '../../../services/compute/src/host/run.ts';
import { logOf } from './logs.ts';
import {
  addressOf,
  archiveSettings,
  databaseStatements,
  etcdSettings,
  NAMES,
  type Name,
  patroniConfig,
} from './page.ts';
import { Program } from './program.ts';

const AS_POSTGRES = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--init-groups', '--'];
const ASK_TIMEOUT_MS = 2_000;
const LOOK_MS = 250;
/** A server may have to be rewound first. */
const WHOLE_LIMIT_MS = 180_000;
/** Of three. */
const MOST = 2;

interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly lag?: number | string;
}

const leaderOf = (members: readonly Member[]) => members.find(({ role }) => role === 'leader')?.name;

const isGone = (pid: number) => !existsSync(`/proc/${pid}`);

/** Three servers with etcd, Patroni and PostgreSQL, as the page makes them. */
export class Cluster {
  readonly #directory: string;
  readonly #isSynchronous: boolean;
  readonly etcd: ReadonlyMap<Name, Program>;
  readonly patroni: ReadonlyMap<Name, Program>;

  /** @param directory where other users may walk */
  constructor(directory: string, isSynchronous = true) {
    this.#directory = directory;
    this.#isSynchronous = isSynchronous;
    const make = (name: Name, of: (own: string) => Program): [Name, Program] => {
      const own = this.directoryOf(name);
      mkdirSync(own, { recursive: true });
      return [name, of(own)];
    };
    this.etcd = new Map(
      NAMES.map((name) =>
        make(
          name,
          (own) => new Program(['etcd'], etcdSettings(name, `${own}/etcd`), logOf(directory, `etcd-${name}`)),
        ),
      ),
    );
    this.patroni = new Map(
      NAMES.map((name) =>
        make(name, (own) => {
          const path = `${own}/patroni.yml`;
          writeFileSync(path, patroniConfig(name, own, isSynchronous));
          const env = archiveSettings(own);
          return new Program([...AS_POSTGRES, 'patroni', path], env, logOf(directory, `patroni-${name}`));
        }),
      ),
    );
  }

  /** A server's own directory, or what is below it. */
  directoryOf = (name: Name, below = ''): string => join(this.#directory, name, below);

  async open(): Promise<void> {
    for (const name of NAMES) await run('chown', ['postgres:postgres', this.directoryOf(name)]);
    for (const name of NAMES) this.etcd.get(name)!.start();
    for (const name of NAMES) this.patroni.get(name)!.start();
    await this.whole();
    const client = new pg.Client({
      ...{ host: addressOf(await this.primary()), user: 'postgres', password: 'PASSWORD1' },
      database: 'postgres',
    });
    await client.connect();
    for (const statement of databaseStatements()) await client.query(statement);
    await client.end();
  }

  /** As the Patroni of one server tells it; empty where it does not answer, as one that was killed or is frozen. */
  async membersBy(name: Name): Promise<readonly Member[]> {
    try {
      const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
      const answer = await fetch(`http://${addressOf(name)}:8008/cluster`, { signal });
      return ((await answer.json()) as { members: Member[] }).members;
    } catch {
      return [];
    }
  }

  #views = (): Promise<(readonly Member[])[]> => Promise.all(NAMES.map((name) => this.membersBy(name)));

  /** Whether a server takes itself for the primary, whatever the others say. */
  leads = async (name: Name): Promise<boolean> => leaderOf(await this.membersBy(name)) === name;

  /** The server that most of them take for the primary: one that was frozen may not have heard yet. */
  async primary(): Promise<Name> {
    const find = async () => {
      const leaders = (await this.#views()).map(leaderOf);
      return NAMES.find((name) => leaders.filter((leader) => leader === name).length >= MOST);
    };
    return (await until('a primary', find, Boolean, { everyMs: LOOK_MS, limitMs: WHOLE_LIMIT_MS }))!;
  }

  #isWhole = (views: readonly (readonly Member[])[]): boolean => {
    const standby = this.#isSynchronous ? 'sync_standby' : 'replica';
    const isWhole = (members: readonly Member[]) =>
      members.filter(({ state }) => state === 'running' || state === 'streaming').length === NAMES.length &&
      members.some(({ role }) => role === standby) &&
      members.every(({ role, lag }) => role === 'leader' || lag === 0);
    return views.every(isWhole) && new Set(views.map(leaderOf)).size === 1;
  };

  /** Whether every Patroni says that all three run, and that one of them is the synchronous standby where there is to be one. */
  isWhole = async (): Promise<boolean> => this.#isWhole(await this.#views());

  /** Resolves when it is whole. */
  async whole(): Promise<void> {
    await until('all servers are in step', () => this.#views(), this.#isWhole, {
      ...{ everyMs: LOOK_MS, limitMs: WHOLE_LIMIT_MS },
    });
  }

  /** Whether its files are being changed to those of another timeline. */
  isRewound(name: Name): boolean {
    const isRewind = (pid: string) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return words[0]!.endsWith('/pg_rewind') && words.includes(this.directoryOf(name, 'data'));
      } catch {
        return false;
      }
    };
    return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && isRewind(pid));
  }

  /** The postmaster, and the processes that it began. */
  postgres(name: Name): number[] {
    const file = this.directoryOf(name, 'data/postmaster.pid');
    let postmaster: number;
    try {
      postmaster = Number(readFileSync(file, 'utf8').split('\n')[0]);
    } catch {
      return [];
    }
    const isChild = (pid: string) => {
      try {
        return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]) === postmaster;
      } catch {
        return false;
      }
    };
    return [
      postmaster,
      ...readdirSync('/proc')
        .filter((pid) => /^\d+$/.test(pid) && isChild(pid))
        .map(Number),
    ];
  }

  signal(pids: readonly number[], signal: NodeJS.Signals): void {
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /** Kills a server's Patroni and PostgreSQL. */
  async killServer(name: Name): Promise<void> {
    const pids = this.postgres(name);
    await this.patroni.get(name)!.kill();
    this.signal(pids, 'SIGKILL');
  }

  /** All three are gone, with their disks; Patroni does not run. */
  async lose(): Promise<void> {
    for (const name of NAMES) await this.killServer(name);
    await until('PostgreSQL has ended', () => NAMES.every((name) => this.postgres(name).every(isGone)));
    for (const name of NAMES) rmSync(this.directoryOf(name, 'data'), { recursive: true });
  }

  /** Of a primary: the processes that send its log to the standbys. */
  walSenders(name: Name): number[] {
    const isSender = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(': walsender ');
    return this.postgres(name).filter(isSender);
  }
}
