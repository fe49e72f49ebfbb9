import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { GUESTS_UNIT } from '../../services/compute/src/vm/guest-scope.ts';
import { DAEMONS, type Daemon } from '../daemons.ts';
import { ROOT } from '../source.ts';
import { NODE, unitOf } from './layout.ts';
import { renderGuestsUnit, renderUnit } from './units.ts';

/** In tenths, as --threshold has it. The compute node is root and makes devices, networks and file systems (docs/packages.md). */
const EXPOSURE_MAX = 20;
const COMPUTE_EXPOSURE_MAX = 70;
/** Of systemd 254 and newer; older ones say that they ignore them. */
const NEW_KEYS = /Unknown key (?:name )?'(?:RestartSteps|RestartMaxDelaySec)'/;

const directory = mkdtempSync(join(tmpdir(), 'skerry-units-'));
after(() => rmSync(directory, { recursive: true }));

function write(daemon: Daemon): string {
  const path = join(directory, unitOf(daemon.name));
  // The program has to be there.
  writeFileSync(path, renderUnit(daemon).replaceAll(NODE, process.execPath));
  return path;
}

/** The calls of groups and of groups in them (systemd-analyze syscall-filter). */
function listCalls(names: readonly string[]): Set<string> {
  const [groups, calls] = [
    names.filter((name) => name.startsWith('@')),
    names.filter((name) => !name.startsWith('@')),
  ];
  const inside = groups.flatMap((group) => {
    const text = execFileSync('systemd-analyze', ['syscall-filter', '--no-pager', group], {
      encoding: 'utf8',
    });
    const lines = text
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
    return [...listCalls(lines.filter((line) => line !== '' && !line.startsWith('#')))];
  });
  return new Set([...calls, ...inside]);
}

describe('units', () => {
  for (const daemon of DAEMONS)
    test(`${daemon.name}: systemd understands every line, and finds it confined`, () => {
      const path = write(daemon);
      const said = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', path], {
        encoding: 'utf8',
      });
      const complaints = said.stderr.split('\n').filter((line) => line !== '' && !NEW_KEYS.test(line));
      assert.deepEqual(complaints, []);
      const limit = daemon.name === 'compute' ? COMPUTE_EXPOSURE_MAX : EXPOSURE_MAX;
      execFileSync(
        'systemd-analyze',
        ['security', '--offline=true', '--no-pager', `--threshold=${limit}`, path],
        { stdio: ['ignore', 'ignore', 'pipe'] },
      );
    });

  test("the compute node's system calls are enough for what it starts", () => {
    const compute = DAEMONS.find(({ name }) => name === 'compute')!;
    const filter = /^SystemCallFilter=(.*)$/m.exec(renderUnit(compute))![1]!;
    const allowed = listCalls(filter.split(' '));
    // QEMU's -sandbox and -chroot, bwrap, what gives a sandbox its name, mke2fs and mmdebstrap.
    for (const call of [
      'seccomp',
      'chroot',
      'unshare',
      'setns',
      'pivot_root',
      'mount',
      'sethostname',
      'mknod',
    ])
      assert.ok(allowed.has(call), call);
    assert.ok(!allowed.has('reboot'));
  });

  test('a successor of the gateway answers the watchdog of its unit', () => {
    const unit = renderUnit(DAEMONS.find(({ name }) => name === 'gateway')!);
    const seconds = Number(/^WatchdogSec=(\d+)$/m.exec(unit)![1]);
    assert.match(
      unit,
      new RegExp(`^ExecReload=/usr/bin/env WATCHDOG_USEC=${seconds}000000 .* gateway replace$`, 'm'),
    );
  });

  test('what shuts guests down is understood, too', () => {
    const path = join(directory, GUESTS_UNIT);
    writeFileSync(path, renderGuestsUnit().replaceAll(NODE, process.execPath));
    const said = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', path], {
      encoding: 'utf8',
    });
    assert.equal(said.stderr, '');
  });

  test('docs/packages.md says what each right of the compute node is for', () => {
    const compute = DAEMONS.find(({ name }) => name === 'compute')!;
    const page = readFileSync(join(ROOT, 'docs/packages.md'), 'utf8');
    const capabilities = /^CapabilityBoundingSet=(.*)$/m.exec(renderUnit(compute))![1]!.split(' ');
    const told = [...page.matchAll(/`(CAP_\w+)`/g)].map(([, name]) => name!);
    assert.deepEqual(told.toSorted(), capabilities.toSorted());
  });

  test('a looser unit is found out', () => {
    const path = join(directory, 'skerry-loose.service');
    writeFileSync(
      path,
      renderUnit(DAEMONS[0]!)
        .replace('ProtectSystem=strict\n', '')
        .replace(/^User=.*$/m, ''),
    );
    const args = ['security', '--offline=true', '--no-pager', `--threshold=${EXPOSURE_MAX}`, path];
    assert.equal(spawnSync('systemd-analyze', args).status, 1);
  });
});
