import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { readGuide } from '../../guides/follow.ts';
import { EXAMPLE_TIME, PAGE, SECTIONS } from './page.ts';

// 0.2 CPU seconds; npm run soak -- restore does what is read here.
test('docs/backup.md has the steps that the soak follows, and the moment that it replaces', () => {
  const steps = Object.values(SECTIONS).flatMap((section) => readGuide(PAGE, section));
  for (const { line, script } of steps) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' });
    assert.equal(status, 0, `docs/${PAGE}:${line}: ${stderr}`);
  }
  const moments = readGuide(PAGE, SECTIONS.restoreServer).filter(({ script }) =>
    script.includes(EXAMPLE_TIME),
  );
  assert.equal(moments.length, 1);
});
