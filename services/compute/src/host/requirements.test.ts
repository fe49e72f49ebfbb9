import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decideCapacity, decideVolumesGib, withoutPrograms } from './capacity.ts';
import { hasCapability } from './preflight.ts';
import { type HostFacts, listObstacles, packagesFor } from './requirements.ts';

const good: HostFacts = {
  architecture: 'x64',
  isLinux: true,
  isRoot: true,
  isDebian: true,
  hasNetAdmin: true,
  canOpenTun: true,
  canWriteNetworkSettings: true,
  missingPrograms: [],
};

describe('listObstacles', () => {
  test('none where nothing is missing', () => {
    assert.deepEqual(listObstacles(good), []);
  });

  test('missing programs come with the one line that installs them', () => {
    const missingPrograms = ['qemu-system-x86_64', 'qemu-img', 'nft', 'flock', 'unshare'];
    const [obstacle = ''] = listObstacles({ ...good, missingPrograms });
    assert.match(obstacle, /qemu-system-x86_64, qemu-img, nft/);
    assert.match(
      obstacle,
      /apt-get install --no-install-recommends nftables qemu-system-x86 qemu-utils util-linux$/,
    );
    assert.deepEqual(packagesFor(['flock', 'unshare']), ['util-linux']);
  });

  test('everything is said at once', () => {
    const bare = {
      ...good,
      hasNetAdmin: false,
      canOpenTun: false,
      missingPrograms: ['nft'],
      architecture: 'arm64',
    };
    assert.equal(listObstacles(bare).length, 4);
  });

  test('an ordinary user is told to be root, and not what only root could see', () => {
    const obstacles = listObstacles({
      ...good,
      isRoot: false,
      hasNetAdmin: false,
      canOpenTun: false,
      canWriteNetworkSettings: false,
    });
    assert.equal(obstacles.length, 1);
    assert.match(obstacles[0] ?? '', /as root/);
  });

  test('elsewhere than Linux nothing more is said', () => {
    assert.deepEqual(listObstacles({ ...good, isLinux: false, isRoot: false }), [
      'virtual machines need Linux',
    ]);
  });
});

test('capabilities are bits of a hexadecimal number', () => {
  assert.equal(hasCapability('CapPrm:\t0\nCapEff:\t0000000000001000\n', 12n), true);
  assert.equal(hasCapability('CapEff:\t0000000000000fff\n', 12n), false);
  assert.equal(hasCapability('', 12n), false);
});

test("capacity: the operator's word, else what there is less a reserve, never below nothing", () => {
  const none = { cpu: undefined, memoryMib: undefined, diskGib: undefined };
  assert.deepEqual(decideCapacity(none, { cpu: 4, memoryMib: 8_192, diskGib: 100 }), {
    cpu: 4,
    memoryMib: 7_168,
    diskGib: 95,
  });
  assert.deepEqual(decideCapacity(none, { cpu: 1, memoryMib: 512, diskGib: 1 }), {
    cpu: 1,
    memoryMib: 0,
    diskGib: 0,
  });
  assert.deepEqual(
    decideCapacity({ cpu: 2, memoryMib: 0, diskGib: 9 }, { cpu: 4, memoryMib: 8_192, diskGib: 100 }),
    { cpu: 2, memoryMib: 0, diskGib: 9 },
  );
});

test('capacity: programs have their part, though of a small disk not more than a quarter of what is beyond the reserve', () => {
  const programsOf = (freeGib: number) => ({ memoryMib: 1_024, diskGib: decideVolumesGib(8, freeGib) });
  const offered = (diskGib: number) =>
    decideCapacity(
      { cpu: undefined, memoryMib: undefined, diskGib: undefined },
      withoutPrograms({ cpu: 1, memoryMib: 4_096, diskGib }, programsOf(diskGib)),
    );
  assert.deepEqual(offered(100), { cpu: 1, memoryMib: 2_048, diskGib: 87 });
  assert.deepEqual(
    [37, 21, 14, 6, 3].map((diskGib) => offered(diskGib).diskGib),
    [24, 12, 7, 1, 0],
  );
});
