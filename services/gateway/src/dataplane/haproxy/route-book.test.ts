import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findComplaint, isGone, RouteBook, takeAway } from './route-book.ts';

const open = () => new RouteBook('/run/routes.map', 443);
const forget = (hostname: string) => `clear table names key ${hostname}`;

test('a change of a route is as few commands as it takes', () => {
  const book = open();
  const began = book.begin([
    { hostname: 'a.example', ipv6: '2001:db8::1' },
    { hostname: 'b.example', ipv6: '2001:db8::2', proxyHeader: true },
  ]);
  assert.equal(began.map, 'a.example 2001:db8::1\nb.example s1\n');
  assert.deepEqual(began.servers, [{ server: 's1', ipv6: '2001:db8::2' }]);
  const change = (hostname: string, ipv6: string | null, proxyHeader = false) =>
    book.change({ hostname, ipv6, proxyHeader });
  const map = 'map /run/routes.map';
  assert.deepEqual(change('a.example', '2001:db8::3').commands, [
    `set ${map} a.example 2001:db8::3`,
    forget('a.example'),
  ]);
  assert.deepEqual(change('c.example', '2001:db8::4').commands, [
    `add ${map} c.example 2001:db8::4`,
    forget('c.example'),
  ]);
  assert.deepEqual(change('b.example', '2001:db8::5', true).commands, [
    'set server headers/s1 addr 2001:db8::5',
    forget('b.example'),
  ]);
  assert.deepEqual(change('b.example', '2001:db8::5'), {
    commands: [`set ${map} b.example 2001:db8::5`, forget('b.example')],
    leaving: ['s1'],
  });
  // A server's name is never used again.
  assert.deepEqual(change('b.example', '2001:db8::5', true).commands, [
    'add server headers/s2 [2001:db8::5]:443 send-proxy-v2 weight 0',
    'enable server headers/s2',
    `set ${map} b.example s2`,
    forget('b.example'),
  ]);
  assert.deepEqual(change('b.example', null), {
    commands: [`del ${map} b.example`, forget('b.example')],
    leaving: ['s2'],
  });
  assert.deepEqual(change('b.example', null).commands, [forget('b.example')]);
  assert.equal(book.has({ hostname: 'a.example', ipv6: '2001:db8::3' }), true);
  assert.equal(book.has({ hostname: 'a.example', ipv6: '2001:db8::3', proxyHeader: true }), false);
});

test('what could be another command is told to nobody', () => {
  const book = open();
  const bad = [
    'a;shutdown frontend listener0',
    'a b',
    'a\nb',
    'A.example',
    '',
    'a\\;b',
    `${'a'.repeat(254)}`,
  ];
  assert.equal(book.begin(bad.map((hostname) => ({ hostname, ipv6: '::1' }))).map, '');
  for (const hostname of bad) assert.deepEqual(book.change({ hostname, ipv6: '::1' }).commands, []);
  assert.deepEqual(book.change({ hostname: 'a.example', ipv6: '::1;quit' }).commands, []);
});

test('what HAProxy answers to orders is understood', () => {
  assert.equal(
    findComplaint("\n\nNew server registered.\n\nIP changed from '::1' to '::2' by 'x'\n"),
    undefined,
  );
  assert.equal(findComplaint('\nKey not found.\n'), 'Key not found.');
  assert.equal(takeAway('s7'), 'set server headers/s7 state maint;del server headers/s7');
  assert.equal(isGone('\nServer deleted.\n'), true);
  assert.equal(isGone('Server still has connections attached to it, cannot remove it.\n'), false);
});
