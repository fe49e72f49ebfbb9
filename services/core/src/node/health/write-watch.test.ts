import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { WriteWatch } from './write-watch.ts';

test('where nobody writes any more after a refusal, the log does not say that the database takes writes', async () => {
  const lines: { readonly level: number; readonly msg: string }[] = [];
  let uptimeMs = 0;
  const watch = new WriteWatch({
    write: async () => {
      throw Object.assign(new Error('could not extend file'), { code: '53100' });
    },
    log: createLogger('core', 'info', { write: (line: string) => void lines.push(JSON.parse(line)) }),
    uptime: () => uptimeMs,
  });
  await assert.rejects(watch.write(async () => {}));
  assert.equal(watch.refusal, 'the disk of the database is full');
  uptimeMs = 599_999;
  assert.equal(watch.refusal, 'the disk of the database is full');
  uptimeMs = 600_000;
  assert.equal(watch.refusal, undefined);
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg.split(':')[0]]),
    [
      [50, 'the disk of the database is full'],
      [30, 'no write for 10 minutes'],
    ],
  );
});
