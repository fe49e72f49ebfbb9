import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { createTestDatabase } from '../../packages/database/src/testing/database.ts';
import { withDirectory } from './options.ts';
import { runSockets } from './sockets/run.ts';

/** `npm run soak -- sockets`, briefly. */
test('hundreds of WebSockets lack nothing and get nothing twice, whenever they came', () =>
  withDirectory(async (directory) => {
    await using database = await createTestDatabase({ log: createLogger('test', 'silent') });
    const { open, gaps, duplicates, behind, ended } = await runSockets({
      ...{
        directory,
        databaseUrl: database.url,
        channels: 30,
        readers: 300,
        greedy: 3,
        slow: 5,
        perSecond: 200,
      },
      isEnough: (sent) => sent >= 300,
    });
    assert.deepEqual(
      { open, gaps, duplicates, behind, ended },
      { open: 308, gaps: 0, duplicates: 0, behind: 0, ended: 0 },
    );
  }));
