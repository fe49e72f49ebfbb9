import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkNames } from './names.ts';
import { sharesRuleset } from './shares.ts';

test('a few guests that send to ever new hosts do not fill what the others are remembered by: their packets would be dropped', () => {
  const rules = sharesRuleset(networkNames('ab'.repeat(32)), { guestConnections: 0, guestMbit: 0 });
  const [, perSecond, burst] = /update @looking \{ iifname limit rate over ([0-9]+)\/second burst ([0-9]+) /
    .exec(rules)!
    .map(Number);
  const names = [...rules.matchAll(/^ *add @(\w+) \{ iifname \. rt /gm)].map(([, name]) => name!);
  assert.equal(names.length, 2);
  for (const name of names) {
    const [, size, time, unit] = new RegExp(
      `set ${name} \\{.*?size ([0-9]+)\\n.*?timeout ([0-9]+)([ms])\\n`,
      's',
    ).exec(rules)!;
    const seconds = Number(time) * (unit === 'm' ? 60 : 1);
    const guests = Number(size) / (burst! + perSecond! * seconds);
    assert.ok(guests > 500, `${name}: ${guests} guests fill it`);
  }
});
