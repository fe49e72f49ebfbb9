import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { playProgram } from '@skerry/kit/testing/play';
import { ensurePrograms } from '../prerequisites.ts';
import { logsOf } from './failover/logs.ts';
import { type SoakOptions, withDirectory } from './options.ts';

/** What the page installs. */
const PROGRAMS = {
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  patroni: 'patroni',
  pg_ctlcluster: 'postgresql-15',
  pgbackrest: 'pgbackrest',
};
/** A network and processes of its own: whatever it leaves ends with it. */
const APART = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
const SCENARIOS = join(import.meta.dirname, 'failover');

/** A core node on the database of docs/high-availability.md, of which parts are killed and frozen. */
export async function soakFailover({ seconds, seed, only, isAsynchronous }: SoakOptions): Promise<void> {
  assert.equal(
    process.geteuid?.(),
    0,
    'this soak needs root: it makes namespaces and runs PostgreSQL as its own user',
  );
  await ensurePrograms(PROGRAMS);
  await withDirectory(async (directory) => {
    // Of PostgreSQL's user, too.
    await chmod(directory, 0o755);
    const scenario = join(SCENARIOS, isAsynchronous ? 'asynchronous.ts' : 'run.ts');
    const program = [process.execPath, scenario, directory, String(seconds), String(seed), only ?? ''];
    // The shell stays, and takes the ends of processes whose parent was killed.
    const begin = ['sh', '-c', 'ip link set lo up; "$@"; exit $?', 'sh', ...program];
    try {
      await playProgram('the scenario', 'unshare', [...APART, ...begin]);
    } catch (error) {
      const kept = await mkdtemp(join(tmpdir(), 'skerry-failover-logs-'));
      await cp(logsOf(directory), kept, { recursive: true });
      const why = (error as Error).message;
      throw new Error(`the logs of all parts are in ${kept}; ${why}`, { cause: error });
    }
  });
}
