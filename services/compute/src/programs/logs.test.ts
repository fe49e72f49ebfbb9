import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProgramLogs } from './logs.ts';

const programOf = (index: number) => ({ hash: `${index}`, owner: '0x1' });

test('the logs of the 256 programs that ran last are kept, and those that are written to or followed', () => {
  const logs = new ProgramLogs();
  const writer = logs.use(programOf(0)).open('stdout');
  const leave = logs.use(programOf(1)).listen(() => {});
  logs.use(programOf(2)).add('stdout', 'ended');
  logs.use(programOf(3)).add('stdout', 'ran again');
  const run = (from: number) => {
    for (let index = from; index < from + 253; index++) logs.use(programOf(index));
  };
  run(10);
  logs.use(programOf(3));
  const found = () => [0, 1, 2, 3].filter((index) => logs.find(`${index}`) !== undefined);
  assert.deepEqual(found(), [0, 1, 3]);
  run(1_000);
  assert.deepEqual(found(), [0, 1, 3]);
  run(2_000);
  assert.deepEqual(found(), [0, 1]);
  writer.write(Buffer.from('goes on'));
  assert.equal(logs.find('0')?.tail.list().at(-1)?.text, 'goes on');
  writer.close();
  leave?.();
  run(3_000);
  assert.deepEqual(found(), []);
  let ends = 0;
  const listen = () =>
    tail.listen(
      () => {},
      () => {
        ends++;
      },
    );
  const tail = logs.use(programOf(3_000));
  listen();
  logs.delete('3000');
  assert.equal(ends, 1, 'who follows one that was forgotten is told');
  listen();
  assert.equal(ends, 2, 'also who comes as it is forgotten');
  assert.equal(logs.find('3000'), undefined);
});
