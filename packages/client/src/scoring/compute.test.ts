import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { canonicalJson, DEFAULT_SCORING_SETTINGS, fieldsOf, sha256Hex } from '@skerry/protocol';
import { computeScores } from './compute.ts';

test('the page about scores names every field of what is published, and how its files are named', async () => {
  const page = readFileSync(new URL('../../../../docs/scoring.md', import.meta.url), 'utf8');
  const [, section = ''] = /\n## What is published\n(.*?)\n## /s.exec(page) ?? [];
  const versions = { 'skerry-core': { '1': { released_on: '2026-11-29' } } };
  const registrations = { ['a'.repeat(64)]: 1 };
  const messages = ['b', 'a'].map((digit) => ({
    itemHash: digit.repeat(64),
    time: 1_000,
    report: { core: [], compute: [] },
  }));
  const { content, files } = await computeScores(
    (async function* () {
      yield* messages;
    })(),
    {
      ...{ period: { from: 0, to: 3_600 }, settings: DEFAULT_SCORING_SETTINGS, publishers: [], tags: [] },
      ...{ versions, registrations },
    },
  );
  const { inputs, scores: _, ...others } = content;
  const namesOf = (value: unknown) => Object.keys(fieldsOf(value));
  const names = [
    ...['scores', ...namesOf(others)],
    ...[content.period, content.settings, content.settings.software, inputs.metrics].flatMap(namesOf),
    ...namesOf(inputs).map((name) => `inputs.${name}`),
  ];
  const told = new Set([...section.matchAll(/`([\w.]+)\??`/g)].map(([, name]) => name));
  for (const name of names) assert.ok(told.has(name), name);

  const list = `${'a'.repeat(64)}\n${'b'.repeat(64)}\n`;
  assert.deepEqual(inputs, {
    publishers: [],
    metrics: { count: 2, hash: sha256Hex(list) },
    versions: sha256Hex(canonicalJson(versions)),
    registrations: sha256Hex(canonicalJson(registrations)),
  });
  assert.equal(files.get(inputs.metrics.hash), list);
});
