import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { until } from '@skerry/kit/testing/until';
import { run } from '../../../services/compute/src/host/run.ts';
import { follow, type Place, readGuide } from '../../guides/follow.ts';
import type { Cluster } from './cluster.ts';
import { logOf } from './logs.ts';
import {
  ARCHIVE_WAL,
  archiveSettings,
  archivingConfig,
  GUIDE,
  NAMES,
  type Name,
  pathsOf,
  SECTIONS,
} from './page.ts';

const STEP_TIMEOUT_MS = 600_000;

const [configure, create, restart, check, save] = readGuide(GUIDE, SECTIONS.save).filter(
  ({ needsServer }) => !needsServer,
);
const restore = readGuide(GUIDE, SECTIONS.restore);

/** The archive of the three servers, which outlives them. */
export class Archive {
  readonly #cluster: Cluster;
  readonly #repository: string;
  readonly #restoreLog: string;

  /** @param directory where other users may walk */
  constructor(directory: string, cluster: Cluster) {
    this.#cluster = cluster;
    this.#repository = join(directory, 'pgbackrest');
    this.#restoreLog = logOf(directory, 'restore');
  }

  /** What the page says of each server, then of the primary. */
  async open(): Promise<void> {
    mkdirSync(this.#repository);
    writeFileSync(this.#restoreLog, '');
    await run('chown', ['postgres:postgres', this.#repository, this.#restoreLog]);
    for (const name of NAMES) await follow([configure!], this.#placeOf(name));
    await follow([create!], this.#placeOf(await this.#cluster.primary()));
    for (const name of NAMES) {
      const own = this.#cluster.directoryOf(name);
      const { '/etc/patroni/config.yml': path } = pathsOf(own) as { '/etc/patroni/config.yml': string };
      writeFileSync(path, archivingConfig(readFileSync(path, 'utf8'), own));
    }
    await follow([restart!], this.#placeOf(NAMES[0]));
    await this.#cluster.whole();
    await follow([check!], this.#placeOf(await this.#cluster.primary()));
    await this.#differ();
  }

  /** What the page has every server do; the primary alone does it. */
  async save(): Promise<void> {
    for (const name of NAMES) await follow([save!], this.#placeOf(name));
  }

  /** Resolves when everything that was written until now is in the archive. */
  async keepAll(): Promise<void> {
    const last = await this.#ask('select pg_walfile_name(pg_current_wal_lsn())');
    await this.#ask('select pg_switch_wal()');
    await until(
      'the log up to here is in the archive',
      () => this.#ask('select last_archived_wal from pg_stat_archiver'),
      (kept) => kept >= last,
      { everyMs: 500 },
    );
  }

  /** A file that is another one than the archive's is refused, and holds nothing up once its timeline has ended. */
  async #differ(): Promise<void> {
    const primary = await this.#cluster.primary();
    const directory = join(this.#cluster.directoryOf(primary), 'differs');
    const file = join(directory, await this.#ask('select last_archived_wal from pg_stat_archiver'));
    const archive = pathsOf(this.#cluster.directoryOf(primary))[ARCHIVE_WAL];
    const script = `mkdir ${directory}
      pgbackrest --stanza=skerry archive-get ${basename(file)} ${file}
      printf x | dd status=none conv=notrunc bs=1 seek=$(($(stat -c %s ${file}) - 1)) of=${file}
      ! ${archive} ${file} 2>/dev/null && touch ${directory}/00000002.history && ${archive} ${file}
      rm -r ${directory}`;
    const { code, printed } = await this.#placeOf(primary).run(`runuser -u postgres -- sh -ec '${script}'`);
    assert.equal(code, 0, printed);
  }

  /** One server from the archive, the others from it. */
  async restore(): Promise<void> {
    const [first, ...others] = NAMES;
    await follow(restore, this.#placeOf(first));
    this.#cluster.patroni.get(first)!.start();
    await until('the first one leads', () => this.#cluster.leads(first), Boolean, { everyMs: 500 });
    for (const name of others) this.#cluster.patroni.get(name)!.start();
    await this.#cluster.whole();
  }

  /** What the primary says to its own user. */
  async #ask(query: string): Promise<string> {
    const place = this.#placeOf(await this.#cluster.primary());
    const { code, printed } = await place.run(`runuser -u postgres -- psql -tAc "${query}"`);
    assert.equal(code, 0, printed);
    return printed.trim();
  }

  #placeOf(name: Name): Place {
    const own = this.#cluster.directoryOf(name);
    const env = { PATH: process.env.PATH, LANG: 'C.UTF-8', PGHOST: own, ...archiveSettings(own) };
    return {
      isServer: false,
      standIns: {
        ...pathsOf(own),
        '/srv/pgbackrest': this.#repository,
        '/var/lib/postgresql/restore.log': this.#restoreLog,
      },
      run: async (script) => {
        const child = spawn('bash', ['-ec', `exec 2>&1\n${script}`], {
          ...{ cwd: own, stdio: ['ignore', 'pipe', 'inherit'], env, timeout: STEP_TIMEOUT_MS },
        });
        const [printed, [code]] = await Promise.all([text(child.stdout!), once(child, 'exit')]);
        return { code: code as number | null, printed };
      },
    };
  }
}
