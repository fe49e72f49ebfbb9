import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressBook } from './address-book.ts';
import { LINKS_PER_POOL } from './ipv4.ts';

const idOf = (number: number) => number.toString(16).padStart(64, '0');
const open = { allowedPorts: [] };
const openBook = () => new AddressBook({ table: 'skerry_test', ports: { first: 24_000, last: 24_099 } });

test('an instance that left finds its link when it comes back, and no other one gets it meanwhile', async () => {
  const book = openBook();
  const links = async (...numbers: readonly number[]) => {
    const claims = [];
    for (const number of numbers) claims.push((await book.claim(idOf(number), open)).link);
    return claims;
  };
  assert.deepEqual(await links(0, 1), [0, 1]);
  book.leave(idOf(0));
  // One that another process knew to have left has none where somebody has it.
  book.keep(idOf(9), 1);
  book.keep(idOf(8), 2);
  assert.deepEqual(await links(2, 0, 8, 9), [3, 0, 2, 4]);
  book.free(idOf(0));
  assert.deepEqual(await links(5), [0]);
});

test('where all links are taken, the one is given away whose instance left first', async () => {
  const book = openBook();
  for (let link = 0; link < LINKS_PER_POOL; link++) book.keep(idOf(link), LINKS_PER_POOL - 1 - link);
  const claim = async (number: number) => (await book.claim(idOf(number), open)).link;
  assert.equal(await claim(LINKS_PER_POOL), LINKS_PER_POOL - 1);
  assert.equal(await claim(1), LINKS_PER_POOL - 2);
  assert.equal(await claim(0), LINKS_PER_POOL - 3);
});
