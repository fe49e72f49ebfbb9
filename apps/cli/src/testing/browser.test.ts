import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goAgain } from './browser.ts';

test('a page is gone to again where the machine\u2019s network changed meanwhile, a few times and for no other reason', async () => {
  const failing = (times: number, words: string) => {
    const asked: string[] = [];
    const goto = goAgain(async (url) => {
      asked.push(url);
      if (asked.length <= times) throw new Error(`page.goto: ${words} at ${url}`);
      return null;
    });
    return { asked, going: goto('http://localhost/') };
  };
  const changed = failing(2, 'net::ERR_NETWORK_CHANGED');
  await changed.going;
  assert.equal(changed.asked.length, 3);
  const always = failing(100, 'net::ERR_NETWORK_CHANGED');
  await assert.rejects(always.going, /NETWORK_CHANGED/);
  assert.equal(always.asked.length, 5);
  const refused = failing(1, 'net::ERR_CONNECTION_REFUSED');
  await assert.rejects(refused.going, /REFUSED/);
  assert.equal(refused.asked.length, 1);
});
