import { test } from 'node:test';
import { runAlone } from './testing/alone.ts';

const isRoot = process.geteuid?.() === 0;

/** A short slice of `npm run soak -- strangers`. */
test(
  'honest users notice nothing of a hostile population',
  {
    skip: isRoot ? false : 'a network namespace takes root',
  },
  () =>
    runAlone(
      'strangers/scenario.ts',
      ...['--seconds', '6', '--quiet', '2', '--machines', '0', '--cores', '2'],
    ),
);
