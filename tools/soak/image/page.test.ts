import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { BLOCK_NAMES, blockOf } from './page.ts';

// 0.1 CPU seconds; npm run soak -- image does what is read here.
test('docs/container.md has the blocks that the soak follows', () => {
  for (const name of BLOCK_NAMES) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: blockOf(name), encoding: 'utf8' });
    assert.equal(status, 0, `${name}: ${stderr}`);
  }
  // What the soak takes from what is printed.
  assert.match(blockOf('use'), /skerry message post .*"text":"hello"/);
  assert.match(blockOf('boot'), /^sudo loginctl enable-linger \$USER$/m);
});
