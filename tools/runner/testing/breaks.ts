import { test } from 'node:test';

/** A test file of which no test passes. */
for (const name of ['one', 'two', 'three', 'four', 'five'])
  test(`breaks (${name})`, () => {
    throw new Error(`${name} is broken`);
  });
