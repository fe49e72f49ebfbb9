import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { findFreePort } from './free-port.ts';

test('no free port is given twice while whoever asked lives', {
  skip: process.platform === 'linux' ? false : 'chance has to do',
}, async () => {
  // By chance alone some of so many would be the same.
  const ports = await Promise.all(Array.from({ length: 400 }, () => findFreePort()));
  assert.equal(new Set(ports).size, ports.length);
});

test('a port at which somebody receives datagrams is not free, and the next one is tried', async () => {
  const taken = createSocket('udp4').bind(0, '127.0.0.1');
  await once(taken, 'listening');
  const other = createSocket('udp4').bind(0, '127.0.0.1');
  await once(other, 'listening');
  const choices = [taken.address().port, other.address().port];
  const given = findFreePort(() => choices.shift() ?? 20_000 + Math.floor(Math.random() * 10_000));
  assert.ok(![taken.address().port, other.address().port].includes(await given));
  assert.equal(choices.length, 0, 'both were tried');
  taken.close();
  other.close();
});
