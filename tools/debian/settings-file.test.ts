import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ConfigSpec, readConfig } from '@skerry/kit';
import { DAEMONS, describeDaemon } from '../daemons.ts';
import { homesOf } from './layout.ts';
import { renderSettings } from './settings-file.ts';

/** As systemd reads such a file. */
const variablesOf = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name, value]) => [name!, value!] as const),
  );

for (const daemon of DAEMONS)
  test(`${daemon.name}: its file shows every setting; as it is it changes nothing, and neither do its defaults`, () => {
    const text = renderSettings(daemon);
    assert.deepEqual(variablesOf(text), {});
    const shown = variablesOf(text.replaceAll(/^#(?=[A-Z])/gm, ''));
    const own = describeDaemon(daemon, {}).map(({ variable }) => variable);
    assert.deepEqual(Object.keys(shown), [...own, 'SKERRY_LOG_LEVEL', 'SKERRY_LOG_FORMAT', 'NODE_OPTIONS']);
    const homes = homesOf(daemon.name);
    const spec = daemon.config as ConfigSpec<unknown>;
    assert.deepEqual(readConfig(spec, { ...homes, ...shown }), readConfig(spec, homes));
    assert.ok(text.split('\n').every((line) => line.startsWith('#') || line === ''));
  });
