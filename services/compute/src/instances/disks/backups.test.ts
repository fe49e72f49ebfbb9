import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { inDirectory } from '../../testing/directory.ts';
import { Backups } from './backups.ts';

const ID = 'a'.repeat(64);

test('a backup that is deleted while it is made does not come back', () =>
  inDirectory(async (dataDir) => {
    const backups = new Backups({ dataDir, signal: new AbortController().signal, now: Date.now });
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const deleted = await backups.start(ID, () => ends[0].promise);
    await backups.delete(ID, deleted.id);
    const kept = await backups.start(ID, () => ends[1].promise);
    for (const end of ends) end.reject(new Error('the machine is gone'));
    const list = () => backups.list(ID);
    await until('both have ended', list, (all) =>
      all.some(({ id, state }) => id === kept.id && state === 'failed'),
    );
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      [kept.id],
    );
  }));
