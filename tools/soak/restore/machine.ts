import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { until } from '@skerry/kit/testing/until';
import { SKERRY } from '../../../apps/cli/src/testing/shell.ts';
import { run } from '../../../services/compute/src/host/run.ts';
import type { Place } from '../../guides/follow.ts';

/** Of Debian's PostgreSQL and pgBackRest; here each machine has its own. */
const OWN = ['/etc', '/var/lib/postgresql', '/var/log/postgresql', '/var/log/pgbackrest'];
const STEP_TIMEOUT_MS = 600_000;

/** A machine's disk, in mounts that this process and its children see. */
export class Machine implements Place {
  readonly #directory: string;
  readonly isServer = false;
  /** What is kept elsewhere: backups outlive the machine. */
  readonly backups: string;
  readonly data: string;
  standIns: Record<string, string>;

  private constructor(directory: string, standIns: Readonly<Record<string, string>>) {
    this.#directory = directory;
    this.backups = join(directory, 'backup');
    this.data = join(directory, 'skerry');
    this.standIns = {
      '/srv/backup': this.backups,
      '/srv/pgbackrest': join(directory, 'pgbackrest'),
      ...standIns,
    };
  }

  static async open(directory: string, standIns: Readonly<Record<string, string>>): Promise<Machine> {
    const machine = new Machine(directory, standIns);
    for (const path of OWN) {
      const own = join(directory, path);
      await mkdir(own, { recursive: true });
      if (path === '/etc') await run('cp', ['--archive', '/etc/.', own]);
      else await run('chown', ['postgres:postgres', own]);
      await run('mount', ['--bind', own, path]);
    }
    await run('mount', ['-t', 'tmpfs', 'tmpfs', '/run']);
    await run('install', ['-d', '-o', 'postgres', '-g', 'postgres', '/run/postgresql']);
    await rm('/etc/postgresql/15', { recursive: true, force: true });
    await mkdir('/etc/skerry');
    const bin = join(directory, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'skerry'), `#!/bin/sh\nexec '${process.execPath}' '${SKERRY}' "$@"\n`);
    await chmod(join(bin, 'skerry'), 0o755);
    return machine;
  }

  async run(script: string): Promise<{ code: number | null; printed: string }> {
    const home = join(this.#directory, 'home');
    const child = spawn('bash', ['-ec', `exec 2>&1\n${script}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Whoever looks for the settings of a package finds those of this machine.
      env: {
        PATH: `${join(this.#directory, 'bin')}:${process.env.PATH}`,
        ...{ HOME: home, SKERRY_HOME: home, LANG: 'C.UTF-8' },
      },
      timeout: STEP_TIMEOUT_MS,
    });
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return { code: code as number | null, printed };
  }

  /** What a query prints, asked as the server's own user. */
  async query(sql: string, database = 'postgres'): Promise<string> {
    const asked = ['-u', 'postgres', '--', 'psql', '--no-psqlrc', '-tA', '-d', database, '-c', sql];
    return (await run('runuser', asked)).trim();
  }

  /** All that the installation of PostgreSQL leaves. */
  createServer = () => run('pg_createcluster', ['15', 'main', '--start']);

  /** Power is cut: the server ends without a word. */
  async killServer(): Promise<void> {
    const postmaster = Number(
      readFileSync('/var/lib/postgresql/15/main/postmaster.pid', 'utf8').split('\n')[0],
    );
    process.kill(postmaster, 'SIGKILL');
    await until('PostgreSQL has ended', () => !hasServer());
  }

  /** Keys, settings, the database and its server's settings are gone; backups are elsewhere. */
  async lose(): Promise<void> {
    await rm(this.data, { recursive: true });
    for (const path of ['/var/lib/postgresql', '/etc/postgresql', '/etc/skerry'])
      for (const name of await readdir(path).catch(() => [])) await rm(join(path, name), { recursive: true });
  }
}

/** Whether a server of Debian's runs in these namespaces; the embedded one has another path. */
function hasServer(): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('15/main');
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}
