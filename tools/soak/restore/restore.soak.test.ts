import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ensurePrograms } from '../../prerequisites.ts';
import { playApart } from '../apart.ts';

/** What docs/backup.md sets up. */
const PROGRAMS = { pg_ctlcluster: 'postgresql-15', pgbackrest: 'pgbackrest' };

describe('docs/backup.md, followed literally under load', () => {
  let home: string;
  before(async () => {
    assert.equal(process.geteuid?.(), 0, 'this soak needs root: it runs PostgreSQL as its own user');
    await ensurePrograms(PROGRAMS);
    home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
    // Of PostgreSQL's user, too.
    await chmod(home, 0o755);
  });
  after(() => rm(home, { recursive: true, force: true }));

  for (const database of ['embedded', 'server'])
    test(`a node with its database ${database === 'server' ? 'on a server' : 'embedded'} is saved, lost with all it had, restored, and ends with its peer's digest`, () =>
      playApart(join(import.meta.dirname, 'play.ts'), database, join(home, database)));
});
