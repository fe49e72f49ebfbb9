import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVolumes } from './asked.ts';

test('a volume is mounted where nothing else is; who asks for another place is told which there are', async () => {
  const mountAt = async (mount: string) => {
    const volumes = [{ persistence: 'host' as const, name: 'a', size_mib: 1, mount }];
    const [asked] = await readVolumes(volumes, async () => '');
    return asked?.mount;
  };
  const deep = (directories: number) => '/a'.repeat(directories);
  for (const mount of ['/data', '/var/lib/x_1.y-2', deep(15)]) assert.equal(await mountAt(mount), mount);
  assert.equal(await mountAt('/data/'), '/data');
  for (const mount of ['data', '/a b', '/../a', '/a//b', '/usr/a', '/tmp', deep(16)])
    await assert.rejects(mountAt(mount), {
      code: 'PROGRAM_UNSUPPORTED',
      message: `a volume cannot be mounted at ${mount}: it takes an absolute path of letters, digits, ".", "_" and "-", at most 15 directories deep, and not in /usr, /lib, /lib64, /proc, /dev, /sys, /tmp, /skerry`,
    });
});
