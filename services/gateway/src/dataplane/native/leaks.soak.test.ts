import { test } from 'node:test';
import { builtForTests } from './testing/built.ts';
import { checkLeaks } from './testing/leaks.ts';

test('crowds that behave badly leave nothing behind and disturb nobody', async () => {
  const counts = { silent: 100_000, dying: 50_000, unread: 1000, refused: 20_000 };
  await checkLeaks(await builtForTests(), counts, console.log);
});
