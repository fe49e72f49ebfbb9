import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';

/** A test file whose failure leaves a server open, so that its process does not end by itself. */
test('passes', () => {});
test('is skipped', { skip: 'for a reason' }, () => {});
describe('are skipped', { skip: 'for another reason' }, () => {
  test('one of several', () => {});
});
test('fails', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  assert.equal(1, 2, 'one is not two');
  server.close();
});
