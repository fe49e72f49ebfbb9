import { before, describe, test } from 'node:test';

/** A test file whose tests need something that cannot be made. */
describe('what cannot be made', () => {
  before(() => {
    throw new Error('there is no such thing');
  });
  for (const name of ['one', 'two', 'three', 'four', 'five']) test(`needs it (${name})`, () => {});
});
