import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Crowd } from './crowd.ts';

const one = (clientKey: string, networkKey?: string) => ({ clientKey, networkKey });

describe('who goes where too many wait', () => {
  test('the oldest of the client that has most, then of the network that has most, and nobody where none has many', () => {
    const crowd = new Crowd();
    const [first, other, second, third] = [one('a'), one('b'), one('a'), one('a')] as const;
    for (const waiting of [first, other, second, third]) crowd.enter(waiting);
    assert.equal(crowd.oldestOfMost(4), undefined);
    assert.equal(crowd.oldestOfMost(3), first);
    crowd.leave(first);
    crowd.leave(first);
    assert.equal(crowd.oldestOfMost(3), undefined);
    assert.equal(crowd.oldestOfMost(2), second);
    const site = Array.from({ length: 3 }, (_, at) => one(`2001:db8:1:${at}::/64`, '2001:db8:1::/48'));
    for (const waiting of site) crowd.enter(waiting);
    assert.equal(crowd.oldestOfMost(3), site[0]);
  });

  test('to find it costs no look at each of those that wait', () => {
    const crowd = new Crowd();
    let looks = 0;
    for (let at = 0; at < 5_000; at++)
      crowd.enter({
        get clientKey() {
          looks++;
          return `client ${at}`;
        },
        networkKey: undefined,
      });
    looks = 0;
    assert.equal(crowd.oldestOfMost(2), undefined);
    assert.equal(looks, 0);
  });
});
