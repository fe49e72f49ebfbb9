import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { defineConfig, describeUnknown, listEffective, readConfig, settings, settingText } from './config.ts';

const spec = defineConfig(
  'SKERRY_X',
  {
    port: settings.port(4024, 'port'),
    coreUrl: settings.url('http://localhost:4024', 'core node'),
    dataDir: settings.directory('data', 'x', 'data'),
    mode: settings.choice(['a', 'b'], 'a', 'mode'),
    names: settings.list([], 'names'),
    verbose: settings.flag(false, 'verbose'),
    images: settings.table(['one', 'two'], { a: 'one' }, 'images'),
    token: settings.optionalSecret('token', 'TOKEN'),
  },
  { isLoud: 'verbose' },
);

test('defaults, given values, and a second name', () => {
  const config = readConfig(spec, {
    SKERRY_HOME: '/h',
    SKERRY_X_PORT: '0',
    SKERRY_X_NAMES: 'a, b,',
    SKERRY_X_VERBOSE: 'yes',
    SKERRY_X_IMAGES: 'b = two, c=one',
    TOKEN: 't',
  });
  assert.deepEqual(config, {
    port: 0,
    coreUrl: 'http://localhost:4024',
    dataDir: '/h/data/x',
    mode: 'a',
    names: ['a', 'b'],
    verbose: true,
    images: { b: 'two', c: 'one' },
    token: 't',
  });
  assert.deepEqual(readConfig(spec, {}).images, { a: 'one' });
  assert.deepEqual(readConfig(spec, { SKERRY_X_IMAGES: 'none' }).images, {});
  assert.equal(readConfig(spec, { SKERRY_X_TOKEN: 'own', TOKEN: 't' }).token, 'own');
});

test('every problem is reported at once; unknown names are problems; secrets are not repeated', () => {
  const environment = {
    SKERRY_X_PORT: '70000',
    SKERRY_X_CORE_URL: 'ftp://x',
    SKERRY_X_MODE: 'c',
    SKERRY_X_IMAGES: 'a=three',
    SKERRY_X_PROT: '1',
    SKERRY_X_IS_LOUD: 'yes',
    SKERRY_XY: 'fine',
  };
  assert.throws(
    () => readConfig(spec, environment),
    (error) => {
      assert.ok(error instanceof AppError && error.code === 'INVALID_CONFIG');
      const { problems } = error.details as { problems: string[] };
      assert.equal(problems.length, 6);
      assert.match(
        problems.join('\n'),
        /SKERRY_X_PORT.*SKERRY_X_CORE_URL.*SKERRY_X_MODE.*SKERRY_X_IMAGES: expected names with one of one, two.*SKERRY_X_PROT is not a known setting; did you mean SKERRY_X_PORT\?.*SKERRY_X_IS_LOUD is called SKERRY_X_VERBOSE now/s,
      );
      return true;
    },
  );
});

test('a name without its unit finds the one that was meant, if it is the only one', () => {
  const known = ['SKERRY_X_MEMORY_MIB', 'SKERRY_X_RATE_GENERAL', 'SKERRY_X_RATE_HEAVY'];
  assert.match(describeUnknown('SKERRY_X_MEMORY', known), /; did you mean SKERRY_X_MEMORY_MIB\?$/);
  assert.match(describeUnknown('skerry_x_memory', known), /; did you mean SKERRY_X_MEMORY_MIB\?$/);
  for (const name of ['SKERRY_X_RATE', 'SKERRY_X_MEM', 'SKERRY_X_DISK'])
    assert.match(describeUnknown(name, known), /is not a known setting$/);
});

test('the effective values hide secrets', () => {
  const shown = listEffective(spec, readConfig(spec, { TOKEN: 'hush' }));
  assert.ok(!JSON.stringify(shown).includes('hush'));
  assert.equal(shown.find((one) => one.variable === 'SKERRY_X_TOKEN')?.value, '(set, hidden)');
});

test('what a setting may be is told as it is read', () => {
  const spec = defineConfig('TRY', {
    some: settings.integer(0, 12_000, 1, 'some'),
    many: settings.integer(1, Number.MAX_SAFE_INTEGER, 1, 'many'),
    few: settings.optionalInteger(1, 9, 'few'),
    port: settings.port(0, 'port'),
    mode: settings.choice(['a', 'b'], 'a', 'mode'),
    loud: settings.flag(false, 'loud'),
    name: settings.text('x', 'name'),
  });
  assert.deepEqual(
    listEffective(spec, readConfig(spec, {})).map(({ describe }) => describe),
    [
      ...['some (0 to 12000)', 'many (from 1)', 'few (1 to 9)', 'port (0 to 65535)'],
      ...['mode (a, b)', 'loud (yes, no)', 'name'],
    ],
  );
});

test('a value is told as its variable has it', () => {
  const texts = { SKERRY_X_NAMES: 'a,b', SKERRY_X_VERBOSE: 'yes', SKERRY_X_IMAGES: 'b=two,c=one' };
  const shown = new Map(
    listEffective(spec, readConfig(spec, texts)).map(({ variable, value }) => [variable, settingText(value)]),
  );
  for (const [variable, text] of Object.entries(texts)) assert.equal(shown.get(variable), text);
});

test('a database is named by an address of PostgreSQL, which is not repeated where it is none', () => {
  const spec = defineConfig('TRY', { databaseUrl: settings.optionalDatabase('a server', 'DATABASE_URL') });
  for (const url of [
    'postgres://a/b',
    'postgresql://me:pw@one:5432,two/b',
    'socket:/run/pg?db=b',
    '/run/pg b',
  ])
    assert.equal(readConfig(spec, { DATABASE_URL: url }).databaseUrl, url);
  for (const url of ['mysql://me:hunter2@a/b', 'localhost:5432', 'https://a'])
    assert.throws(() => readConfig(spec, { TRY_DATABASE_URL: url }), {
      code: 'INVALID_CONFIG',
      message: 'TRY_DATABASE_URL: expected an address such as postgresql://USER@HOST/NAME',
    });
});

test('a password in an address is refused, and not repeated', () => {
  const spec = defineConfig('TRY', {
    coreUrl: settings.coreUrl('a core node'),
    others: settings.urls([], 'others'),
    one: settings.optionalUrl('one'),
  });
  for (const variable of ['TRY_CORE_URL', 'TRY_OTHERS', 'TRY_ONE'])
    for (const url of ['http://u:hunter2@a', 'http://hunter2@a', 'u:hunter2@a:1', 'http://a/?key=hunter2'])
      assert.throws(() => readConfig(spec, { [variable]: url }), {
        code: 'INVALID_CONFIG',
        message: `${variable}: expected an http or https address, without user name, password, query or fragment`,
      });
  assert.deepEqual(readConfig(spec, { TRY_OTHERS: 'http://a/, https://b/c' }).others, [
    'http://a',
    'https://b/c',
  ]);
});

test('a domain is read as DNS compares it: in any case, with or without the dot at its end', () => {
  const spec = defineConfig('TRY', {
    below: settings.domain('a.test', 'below'),
    zone: settings.optionalDomain('zone'),
  });
  assert.deepEqual(readConfig(spec, {}), { below: 'a.test', zone: undefined });
  const given = { TRY_BELOW: 'Apps.Example.ORG.', TRY_ZONE: 'localhost' };
  assert.deepEqual(readConfig(spec, given), { below: 'apps.example.org', zone: 'localhost' });
  for (const wrong of ['https://a.test', '*.a.test', '-a.test', 'a..test', '.', 'a b', 'x'.repeat(64)])
    assert.throws(() => readConfig(spec, { TRY_ZONE: wrong }), { code: 'INVALID_CONFIG' }, wrong);
});

test('a wrong value is told once', () => {
  const spec = defineConfig('TRY', {
    from: settings.addressRanges([], 'from'),
    port: settings.port(1, 'port'),
  });
  assert.throws(() => readConfig(spec, { TRY_FROM: '10.0.0.0/8,foo' }), {
    message: 'TRY_FROM: expected an IP address or a range such as 10.0.0.0/8, not "foo"',
  });
  assert.throws(() => readConfig(spec, { TRY_PORT: 'foo' }), { message: /^TRY_PORT: .*, not "foo"$/ });
});
