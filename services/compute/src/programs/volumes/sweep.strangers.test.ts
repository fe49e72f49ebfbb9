import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type SweepOptions, sweepVolumes } from './sweep.ts';

/** Looks once. @returns what was erased. @param lag why nothing is to be decided by what the core node says */
async function sweepOnce(lag: string | null, getMessageStatus: SweepOptions['core']['getMessageStatus']) {
  const erased: string[] = [];
  const ending = new AbortController();
  const looked = Promise.withResolvers<void>();
  const volumes = {
    listPrograms: async () => ['gone', 'kept'],
    erase: async (program: string) => void erased.push(program),
  };
  const sync = {
    isInStep: false,
    async check() {
      if (lag !== null) looked.resolve();
      return lag;
    },
  };
  const core: SweepOptions['core'] = {
    getMessageStatus(hash) {
      if (hash === 'kept') looked.resolve();
      return getMessageStatus(hash);
    },
  };
  const log = createLogger('test', 'silent');
  const sweeping = sweepVolumes({ core, sync, volumes, log, signal: ending.signal });
  await looked.promise;
  ending.abort();
  await sweeping;
  return erased;
}

test('volumes are erased only of what was forgotten, and not by the word of a core node that lacks what its peers have', async () => {
  const getMessageStatus = async (hash: string) => {
    if (hash === 'kept') throw new AppError('MESSAGE_NOT_FOUND', 'none');
    return { status: 'forgotten' } as Awaited<ReturnType<SweepOptions['core']['getMessageStatus']>>;
  };
  assert.deepEqual(await sweepOnce(null, getMessageStatus), ['gone']);
  assert.deepEqual(await sweepOnce('it is still fetching', getMessageStatus), []);
});
