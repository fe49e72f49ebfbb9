// The commands of an owner against a real node and a real machine. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../host/run.ts';
import { askTiny, SHELL_PORT, storeTiny } from './tiny-guest.ts';
import { isPhase, PREFIX, playInWorld, READY_MS, STOP_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

const SKERRY = fileURLToPath(new URL('../../../../apps/cli/bin/skerry.js', import.meta.url));

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  const home = await mkdtemp(join(tmpdir(), 'skerry-commands-'));
  const skerry = async <T>(...args: string[]): Promise<T> =>
    JSON.parse(
      await run(process.execPath, [SKERRY, ...args, '--json'], {
        env: { SKERRY_HOME: home, SKERRY_CORE_URL: core.url },
        timeoutMs: READY_MS,
      }),
    ) as T;
  try {
    await world.startNode();
    const node = await world.announced();
    const image = await storeTiny(world);
    await skerry('key', 'new');
    await writeFile(join(home, 'id.pub'), world.sshKey);
    const size = ['--memory', '128M', '--disk', '1G', '--allow', `22,${SHELL_PORT}`];
    const named = ['--name', 'mine', '--image', image, '--ssh-key', join(home, 'id.pub')];
    const made = await skerry<{ instance_id: string }>('instance', 'create', ...named, ...size);
    const id = made.instance_id;
    await core.allocate(id, node, PREFIX);
    const { ipv6 } = await core.until(id, isPhase('running'), READY_MS);
    const write = (text: string) => askTiny(ipv6, `echo ${text} > /root/mark; sync`);
    const isMark = (text: string) =>
      until(`the disk holds ${text}`, READY_MS, () =>
        askTiny(ipv6, 'cat /root/mark 2>/dev/null || echo none', 3_000).then(
          (mark) => mark === text,
          () => false,
        ),
      );

    step('logs');
    const lines = await skerry<{ MESSAGE: string }[]>('instance', 'logs', 'mine');
    assert.ok(lines.some(({ MESSAGE }) => MESSAGE === 'the tiny guest is up'));

    step('snapshots, and back to one');
    await write('one');
    const snapshot = (...args: string[]) => skerry<{ name: string }[]>('instance', 'snapshot', ...args);
    assert.deepEqual(
      (await snapshot('create', 'mine', 'first')).map(({ name }) => name),
      ['first'],
    );
    await write('two');
    await skerry('instance', 'restore', 'mine', '--snapshot', 'first', '--yes');
    await isMark('one');
    assert.deepEqual(await snapshot('delete', 'mine', 'first', '--yes'), []);

    step('backup, reinstall, and back from the file');
    const file = join(home, 'mine.qcow2');
    await skerry('instance', 'backup', 'mine', '-o', file);
    assert.ok((await stat(file)).size > 0);
    await skerry('instance', 'reinstall', 'mine', '--yes');
    await isMark('none');
    await skerry('instance', 'restore', 'mine', '--file', file, '--yes');
    await isMark('one');

    step('reboot, stop, start');
    const before = await askTiny(ipv6, 'cat /proc/sys/kernel/random/boot_id');
    await skerry('instance', 'reboot', 'mine');
    await isMark('one');
    assert.notEqual(await askTiny(ipv6, 'cat /proc/sys/kernel/random/boot_id'), before);
    await skerry('instance', 'stop', 'mine');
    await core.until(id, isPhase('stopped'), STOP_MS);
    assert.ok(
      (await skerry<unknown[]>('instance', 'logs', 'mine')).length > 0,
      'also of a machine that is off',
    );
    await skerry('instance', 'start', 'mine');
    await core.until(id, isPhase('running'), READY_MS);

    step('what is refused says why');
    await assert.rejects(snapshot('delete', 'mine', 'first', '--yes'), /SNAPSHOT_NOT_FOUND/);
    await assert.rejects(
      skerry('instance', 'restore', 'mine', '--snapshot', '1', '--yes'),
      /INVALID_PARAMETERS/,
    );
    await assert.rejects(skerry('instance', 'erase', 'mine', '--yes'), /INSTANCE_BUSY/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

await playInWorld(scenario);
