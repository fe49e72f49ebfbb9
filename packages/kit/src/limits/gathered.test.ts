import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { gathered } from './gathered.ts';

/** Questions that a test answers. */
function holdQuestions() {
  const asked: { keys: readonly string[]; answer: PromiseWithResolvers<ReadonlyMap<string, string>> }[] = [];
  const ask = (keys: readonly string[]) => {
    const answer = Promise.withResolvers<ReadonlyMap<string, string>>();
    asked.push({ keys, answer });
    return answer.promise;
  };
  return { asked, ask };
}

test('the first asks at once; whoever comes meanwhile shares the next question', async () => {
  const { asked, ask } = holdQuestions();
  const get = gathered(ask, { atOnce: 1, keysMax: 2 });
  const answers = ['a', 'b', 'c', 'b', 'd'].map(get);
  assert.deepEqual(
    asked.map(({ keys }) => keys),
    [['a']],
  );
  asked[0]!.answer.resolve(new Map([['a', '1']]));
  assert.equal(await answers[0], '1');
  assert.deepEqual(asked[1]!.keys, ['b', 'c']);
  asked[1]!.answer.resolve(new Map([['b', '2']]));
  assert.deepEqual(await Promise.all(answers.slice(1, 4)), ['2', undefined, '2']);
  assert.deepEqual(asked[2]!.keys, ['d']);
  asked[2]!.answer.resolve(new Map());
  assert.equal(await answers[4], undefined);
});

test('a question that fails is told to those who share it, and the next is asked', async () => {
  const { asked, ask } = holdQuestions();
  const get = gathered(ask, { atOnce: 1, keysMax: 10 });
  const [first, second] = [get('a'), get('b')];
  asked[0]!.answer.reject(new Error('away'));
  await assert.rejects(first, /away/);
  asked[1]!.answer.resolve(new Map([['b', '2']]));
  assert.equal(await second, '2');
});

test('a key that is asked for while its question is under way is asked again: the answer is never older than who asks', async () => {
  const { asked, ask } = holdQuestions();
  const get = gathered(ask, { atOnce: 2, keysMax: 10 });
  const before = get('a');
  const after = get('a');
  asked[1]!.answer.resolve(new Map([['a', 'new']]));
  asked[0]!.answer.resolve(new Map([['a', 'old']]));
  assert.deepEqual(await Promise.all([before, after]), ['old', 'new']);
});

test('everybody is answered, with so many questions at once and so many keys in one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...'abcdefgh'), fc.nat(3)), { maxLength: 40 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 5 }),
      async (readers, atOnce, keysMax) => {
        let underWay = 0;
        const get = gathered(
          async (keys) => {
            assert.ok(++underWay <= atOnce && keys.length <= keysMax && new Set(keys).size === keys.length);
            await Promise.resolve();
            underWay--;
            return new Map(keys.filter((key) => key !== 'h').map((key) => [key, `of ${key}`]));
          },
          { atOnce, keysMax },
        );
        const read = async ([key, turns]: [string, number]) => {
          for (let turn = 0; turn < turns; turn++) await Promise.resolve();
          assert.equal(await get(key), key === 'h' ? undefined : `of ${key}`);
        };
        await Promise.all(readers.map(read));
      },
    ),
  );
});
