import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, type ProgramRun } from '@skerry/protocol';
import { RunReports, type RunReportsOptions } from './reports.ts';

const runOf = (index: number) => ({ run_id: `${index}` }) as ProgramRun;

test('of the runs that are reported together only the one that is refused is lost', async () => {
  const ending = new AbortController();
  const [reported, bad] = [[] as string[], '2'];
  const core = {
    async postMessage({ content }: { content: { content: { runs: ProgramRun[] } } }) {
      const ids = content.content.runs.map(({ run_id }) => run_id);
      if (ids.includes(bad)) throw new AppError('INVALID_JSON', 'what nobody can store');
      reported.push(...ids);
    },
  } as unknown as RunReportsOptions['core'];
  const log = createLogger('test', 'silent');
  const reports = new RunReports({ core, log, signal: ending.signal });
  const ids = Array.from({ length: 4 }, (_, index) => index);
  for (const id of ids) reports.add(runOf(id));
  const working = reports.work();
  await until('all are done with', () => reports.waiting === 0);
  ending.abort();
  await working;
  assert.deepEqual(
    reported,
    ids.map(String).filter((id) => id !== bad),
  );
});
