import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@skerry/kit/testing/until';
import pg from 'pg';
import { run } from '../../../services/compute/src/host/run.ts';
import { addressOf, databaseStatements, etcdSettings, NAMES, type Name, patroniConfig } from './page.ts';

const AS_POSTGRES = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--init-groups', '--'];
const ASK_TIMEOUT_MS = 2_000;

interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly lag?: number | string;
}

/** A program of a server, which is started again after it was killed. */
class Program {
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #log: string;
  #child: ChildProcess | undefined;

  constructor(command: readonly string[], env: Readonly<Record<string, string>>, log: string) {
    this.#command = command;
    this.#env = env;
    this.#log = log;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  start(): void {
    const log = openSync(this.#log, 'a');
    const [program, ...args] = this.#command as [string, ...string[]];
    const env = { PATH: process.env.PATH, LANG: 'C.UTF-8', ...this.#env };
    this.#child = spawn(program, args, { stdio: ['ignore', log, log], env });
    closeSync(log);
  }

  async kill(): Promise<void> {
    const ended = once(this.#child!, 'exit');
    this.#child!.kill('SIGKILL');
    await ended;
  }
}

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
      const own = join(directory, name);
      mkdirSync(own, { recursive: true });
      return [name, of(own)];
    };
    this.etcd = new Map(
      NAMES.map((name) =>
        make(name, (own) => new Program(['etcd'], etcdSettings(name, `${own}/etcd`), `${own}/etcd.log`)),
      ),
    );
    this.patroni = new Map(
      NAMES.map((name) =>
        make(name, (own) => {
          const path = `${own}/patroni.yml`;
          writeFileSync(path, patroniConfig(name, own, isSynchronous));
          return new Program([...AS_POSTGRES, 'patroni', path], {}, `${own}/patroni.log`);
        }),
      ),
    );
  }

  async open(): Promise<void> {
    for (const name of NAMES) await run('chown', ['postgres:postgres', join(this.#directory, name)]);
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

  /** As any of them tells it; empty where none answers. */
  async members(): Promise<readonly Member[]> {
    for (const name of NAMES) {
      try {
        const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
        const answer = await fetch(`http://${addressOf(name)}:8008/cluster`, { signal });
        const { members } = (await answer.json()) as { members: Member[] };
        if (members.some(({ role }) => role === 'leader')) return members;
      } catch {
        // Killed or frozen: another one is asked.
      }
    }
    return [];
  }

  async primary(): Promise<Name> {
    const find = async () => (await this.members()).find(({ role }) => role === 'leader')?.name;
    return (await until('a primary', find)) as Name;
  }

  /** Resolves when all three run, and one of them is the synchronous standby where there is to be one. */
  async whole(): Promise<void> {
    const standby = this.#isSynchronous ? 'sync_standby' : 'replica';
    await until(
      'all servers are in step',
      () => this.members(),
      (members) =>
        members.filter(({ state }) => state === 'running' || state === 'streaming').length === NAMES.length &&
        members.some(({ role }) => role === standby) &&
        members.every(({ role, lag }) => role === 'leader' || lag === 0),
    );
  }

  /** The postmaster, and the processes that it began. */
  postgres(name: Name): number[] {
    const file = join(this.#directory, name, 'data/postmaster.pid');
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

  /** Of a primary: the processes that send its log to the standbys. */
  walSenders(name: Name): number[] {
    const isSender = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(': walsender ');
    return this.postgres(name).filter(isSender);
  }
}
