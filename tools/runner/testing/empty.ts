import { describe, test } from 'node:test';

/** A test file that goes through a list in which there is nothing. */
describe('each of none', () => {
  for (const name of [] as string[]) test(name, () => {});
});
