import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type ConfigSpec, readConfig, type Setting, variableName } from '@skerry/kit';
import { parse } from 'yaml';
import { DAEMONS } from '../daemons.ts';
import { ROOT } from '../source.ts';
import { imageName, STATE } from './layout.ts';

/** Costs less than two CPU seconds. */

interface Service {
  readonly image: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly network_mode?: string;
  readonly volumes: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
  readonly [more: string]: unknown;
}

const TEXT = readFileSync(join(ROOT, 'deploy/compose.yaml'), 'utf8');
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
};
const ADDRESS = `0x${'1'.repeat(40)}`;
const GIVEN: Readonly<Record<string, string>> = {
  SCHEDULER_ADDRESS: ADDRESS,
  CREDIT_ADDRESS: ADDRESS,
  MONITOR_ADDRESS: ADDRESS,
};

/** As Compose does: `${NAME}`, `${NAME:-what it is otherwise}`, `${NAME:?why it must be there}`. */
const interpolate = (text: string) =>
  text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_all, name: string, kind = '', rest = '') => {
    assert.ok(name in GIVEN || kind === '-', `${name} is neither given nor has a default`);
    return GIVEN[name] ?? rest;
  });

const read = (text: string) =>
  parse(text, (_key, value: unknown) => (typeof value === 'string' ? interpolate(value) : value), {
    merge: true,
  }) as unknown as {
    services: Readonly<Record<string, Service>>;
    volumes: Readonly<Record<string, { name: string }>>;
  };

const daemonOf = ({ command: [role] }: Service) => {
  const daemon = DAEMONS.find(({ name }) => name === role);
  assert.ok(daemon, `there is no daemon ${role}`);
  return daemon;
};

/** Reads the settings of each service as its daemon would. Throws where it would not start. */
function checkSettings(text: string): Record<string, unknown>[] {
  const { services } = read(text);
  const placed = Object.values(services).flatMap(({ environment }) => Object.keys(environment));
  const named = [...text.matchAll(/\bSKERRY_\w+/g)].map(([name]) => name);
  assert.deepEqual(
    named.toSorted(),
    placed.toSorted(),
    'a setting stands elsewhere than in the environment of a service',
  );
  return Object.values(services).map((service) => {
    const { config } = daemonOf(service);
    const foreign = Object.keys(service.environment).filter((name) => !name.startsWith(`${config.prefix}_`));
    assert.deepEqual(foreign, [], `not of ${config.prefix}`);
    return readConfig(config as ConfigSpec<Record<string, unknown>>, service.environment);
  });
}

describe('deploy/compose.yaml', () => {
  const { services, volumes } = read(TEXT);
  const page = readFileSync(join(ROOT, 'docs/container.md'), 'utf8');

  test('every daemon but those of a machine of its own is a service that would start', () => {
    checkSettings(TEXT);
    const roles = Object.values(services).map((service) => daemonOf(service).name);
    const expected = DAEMONS.map(({ name }) => name).filter((name) => !['compute', 'ipfs'].includes(name));
    assert.deepEqual(roles.toSorted(), expected.toSorted());
  });

  test('on the network of containers each is heard on both families: busybox wget tries one of them', () => {
    const hosts = Object.values(services)
      .filter(({ network_mode }) => network_mode === undefined)
      .flatMap(({ environment }) => Object.entries(environment).filter(([name]) => name.endsWith('_HOST')));
    assert.ok(hosts.length > 0);
    assert.deepEqual(new Set(hosts.map(([, host]) => host)), new Set(['::']));
  });

  test("on the machine's network, where instances and their nodes are reached over IPv6, the gateway alone is open to others", () => {
    const there = Object.values(services).filter(({ network_mode }) => network_mode === 'host');
    assert.deepEqual(
      there.map((service) => daemonOf(service).name),
      ['gateway', 'monitor', 'status'],
    );
    // A service of the containers' own network has no name there, and the machine's settings are no container's to change.
    for (const service of there) {
      assert.doesNotMatch(JSON.stringify(service), /\/\/(?!127\.0\.0\.1)/, daemonOf(service).name);
      assert.equal(service.sysctls, undefined);
    }
    const hosts = there.flatMap(({ environment }) =>
      Object.entries(environment).filter(([name]) => name.endsWith('_HOST')),
    );
    assert.deepEqual(Object.fromEntries(hosts), {
      SKERRY_GATEWAY_HOST: '::',
      SKERRY_GATEWAY_API_HOST: '127.0.0.1',
      SKERRY_STATUS_HOST: '127.0.0.1',
    });
    assert.ok(there.every(({ ports }) => ports === undefined));
  });

  for (const [what, wrong] of [
    ['an unknown setting', TEXT.replace('SKERRY_CORE_HOST:', 'SKERRY_CORE_HOTS:')],
    ['a setting of another daemon', TEXT.replace('SKERRY_SCHEDULER_HOST:', 'SKERRY_CORE_HOST:')],
    ['a name that no daemon has', TEXT.replace('SKERRY_STATUS_HOST:', 'SKERRY_STATE_HOST:')],
    [
      'a value that is none',
      TEXT.replace('SKERRY_CORE_RATE_EXEMPT: &ours 127', 'SKERRY_CORE_RATE_EXEMPT: &ours x127'),
    ],
    ['a setting in a place that nobody reads', `${TEXT}\nx-more: SKERRY_CORE_NAME\n`],
  ] as const)
    test(`${what} is found out`, () => {
      assert.notEqual(wrong, TEXT);
      assert.throws(() => checkSettings(wrong));
    });

  test('no service has a secret in its environment, or a right that it does not need', () => {
    for (const [name, service] of Object.entries(services)) {
      const { prefix, settings } = daemonOf(service).config;
      const secrets = Object.entries<Setting<unknown>>(settings)
        .filter(([, { secret }]) => secret)
        .map(([key]) => variableName(prefix, key));
      assert.deepEqual(
        Object.keys(service.environment).filter((one) => secrets.includes(one)),
        [],
        name,
      );
      assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']], name);
      assert.ok(!('privileged' in service || 'user' in service || 'cap_add' in service), name);
      assert.equal(service.image, imageName(VERSION), name);
    }
  });

  test('each keeps its data in a volume of its own, where the image has it', () => {
    for (const [name, service] of Object.entries(services)) {
      assert.deepEqual(service.volumes, [`${name}:${STATE}`]);
      assert.equal(volumes[name]!.name, `skerry-${name}`);
      assert.equal(service.container_name, `skerry-${name}`);
    }
    assert.equal(Object.keys(volumes).length, Object.keys(services).length);
  });

  test('each is asked how it is, at a port where it listens; the page names every port', () => {
    for (const [index, config] of checkSettings(TEXT).entries()) {
      const [name, { ports, network_mode, healthcheck }] = Object.entries(services)[index]!;
      const listens = Object.entries(config)
        .filter(([key]) => /^(\w+P|p)ort$/.test(key) && !key.startsWith('upstream'))
        .map(([, port]) => Number(port));
      const published = (ports ?? []).map((port) => Number(port.split(':').at(-1)));
      const inside = network_mode === 'host' ? listens : published;
      for (const port of inside) assert.ok(listens.includes(port), `${name} does not listen at ${port}`);
      const asked = /http:\/\/127\.0\.0\.1:(\d+)\//.exec(healthcheck.test.join(' '))?.[1];
      assert.ok(name === 'monitor' ? asked === '4024' : inside.includes(Number(asked)), `${name}: ${asked}`);
      for (const port of inside) assert.match(page, new RegExp(`\\b${port}\\b`), `${name}: ${port}`);
    }
  });
});
