import { test } from 'node:test';
import { checkUpgrade } from './testing/upgrade.ts';

test('5,000 long-lived transfers, 10,000 route changes, one upgrade: nothing breaks', async () => {
  await checkUpgrade({ transfers: 5000, changes: 10_000, bytes: 200_000 }, console.log);
});
