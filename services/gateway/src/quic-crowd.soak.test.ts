import { test } from 'node:test';
import { checkQuicCrowd } from './testing/quic-crowd.ts';

test('a million spoofed first packets of each kind: bounded memory, and honest clients get through', async () => {
  await checkQuicCrowd(1_000_000, 20_000, console.log);
});
