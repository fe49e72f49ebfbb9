import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findComplaint, findVersion, isGone, RouteBook, takeAway } from './route-book.ts';

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
  const change = (hostname: string, ipv6: string | null, proxyHeader = false) => {
    const { before, map, behind, leaving } = book.change({ hostname, ipv6, proxyHeader });
    return { commands: [...before, ...map, ...behind], leaving };
  };
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

test('a whole map is made of all names, in commands that HAProxy takes, and counts when it is whole', () => {
  const book = open();
  const names = Array.from({ length: 1000 }, (_, index) => `n${index}.example`);
  book.begin(names.map((hostname) => ({ hostname, ipv6: '2001:db8::1' })));
  assert.equal(book.isSlow({ hostname: 'n7.example', ipv6: null }), true);
  book.change({ hostname: 'n7.example', ipv6: null });
  assert.equal(book.isSlow({ hostname: 'n7.example', ipv6: '::1' }), false);
  assert.equal(book.prepareMap, 'prepare map /run/routes.map');
  const commands = [...book.replaceMap('3')];
  assert.equal(commands.at(-1), 'commit map @3 /run/routes.map');
  assert.equal(commands.length, 4);
  const added = commands.slice(0, -1).flatMap((command) => {
    assert.ok(command.length < 16_384);
    assert.ok(command.startsWith('add map @3 /run/routes.map <<\n') && command.endsWith('\n'));
    return command.split('\n').slice(1, -1);
  });
  const left = names.filter((name) => name !== 'n7.example');
  assert.deepEqual(
    added,
    left.map((name) => `${name} 2001:db8::1`),
  );
  assert.deepEqual([...open().replaceMap('1')], ['commit map @1 /run/routes.map']);
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
  const nothing = { before: [], map: [], behind: [], leaving: [] };
  for (const hostname of bad) assert.deepEqual(book.change({ hostname, ipv6: '::1' }), nothing);
  assert.deepEqual(book.change({ hostname: 'a.example', ipv6: '::1;quit' }), nothing);
});

test('what HAProxy answers to orders is understood', () => {
  assert.equal(
    findComplaint("\n\nNew server registered.\n\nIP changed from '::1' to '::2' by 'x'\n"),
    undefined,
  );
  assert.equal(findComplaint('\nKey not found.\n'), 'Key not found.');
  assert.equal(findVersion('New version created: 12\n\n'), '12');
  assert.equal(findVersion('Unknown map identifier.\n'), undefined);
  assert.equal(takeAway('s7'), 'set server headers/s7 state maint;del server headers/s7');
  assert.equal(isGone('\nServer deleted.\n'), true);
  assert.equal(isGone('Server still has connections attached to it, cannot remove it.\n'), false);
});
