import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFreePort } from './free-port.ts';

test('no free port is given twice while whoever asked lives', {
  skip: process.platform === 'linux' ? false : 'chance has to do',
}, async () => {
  // By chance alone some of so many would be the same.
  const ports = await Promise.all(Array.from({ length: 400 }, findFreePort));
  assert.equal(new Set(ports).size, ports.length);
});
