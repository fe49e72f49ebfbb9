import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { decideTrees } from '../../groups/trees.ts';
import { LineCutter } from '../../host/line-cutter.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { sandboxCommand } from './command-line.ts';
import { FrameReader, renderFrame } from './frames.ts';
import { type LogLine, LogTail } from './log-tail.ts';
import { rangesOf, renderSeccompFilter } from './seccomp.ts';
import { ALLOWED_SYSCALLS } from './syscalls.ts';

describe('frames', () => {
  test('come out as they went in, however they are cut', () => {
    const frame = fc.record({
      head: fc.dictionary(fc.string(), fc.jsonValue()),
      body: fc.uint8Array({ maxLength: 300 }),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 5 }),
        fc.array(fc.nat(60), { minLength: 1 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames.map(({ head, body }) => renderFrame(head, body)));
          const reader = new FrameReader();
          const out = [];
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const size = Math.max(1, cuts[turn % cuts.length]!);
            out.push(...reader.push(bytes.subarray(at, at + size)));
            at += size;
          }
          assert.deepEqual(
            out.map(({ head, body }) => [head, [...body]]),
            frames.map(({ head, body }) => [JSON.parse(JSON.stringify(head)), [...body]]),
          );
        },
      ),
    );
  });

  test('any bytes are frames, or a refusal in our words', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), (chunks) => {
        const reader = new FrameReader();
        try {
          for (const chunk of chunks) reader.push(Buffer.from(chunk));
        } catch (error) {
          assert.ok(error instanceof AppError);
        }
      }),
    );
  });
});

test('a frame that comes byte by byte is none: each piece costs the node more than its byte', () => {
  const reader = new FrameReader();
  const frame = renderFrame({}, Buffer.alloc(2 * PROGRAM_LIMITS.framePieces));
  const push = (count: number) => {
    for (let at = 0; at < count; at++) reader.push(frame.subarray(at, at + 1));
  };
  assert.throws(() => push(frame.length), { code: 'PROGRAM_CRASHED' });
});

describe('the end of what a program wrote', () => {
  const { logLineChars, logLinesTold, logTailLines } = PROGRAM_LIMITS;
  const LINES = 65_536;
  const flood = Buffer.alloc(LINES, '\n');
  /** The shortest of a few times: others use the machine as well. */
  const timeOf = (work: () => void) =>
    Math.min(
      ...Array.from({ length: 3 }, () => {
        const sinceMs = performance.now();
        work();
        return performance.now() - sinceMs;
      }),
    );

  test('takes hardly longer to keep than to cut into lines', () => {
    const cutter = new LineCutter(logLineChars);
    const writer = new LogTail().open('stdout');
    const ratio = timeOf(() => writer.write(flood)) / timeOf(() => cutter.push(flood));
    assert.ok(ratio < 10, `${ratio}`);
  });

  test('is the last lines; who follows is told of as many as others leave time for, and how many they are not', () => {
    const tail = new LogTail();
    const writer = tail.open('stdout');
    const told: LogLine[] = [];
    tail.listen((line) => told.push(line));
    writer.write(Buffer.concat([flood, Buffer.from('last\n')]));
    writer.write(Buffer.from('after it\n'));
    assert.equal(tail.list().length, logTailLines);
    const ends = [tail.list(), told].map((lines) => lines.slice(-2).map(({ text }) => text));
    assert.deepEqual(ends, [
      ['last', 'after it'],
      ['last', 'after it'],
    ]);
    assert.equal(told.length, 1 + logLinesTold + 1);
    const { type, text } = told[0]!;
    assert.deepEqual(
      [type, text],
      ['system', `${LINES + 1 - logLinesTold} lines of stdout were left out here`],
    );
  });
});

/** Runs the filter as the kernel does (linux/bpf_common.h), on one call. */
function judge(filter: Buffer, architecture: number, syscall: number, argument0 = 0, argument1 = 0): number {
  const data: Record<number, number> = { 0: syscall, 4: architecture, 16: argument0, 24: argument1 };
  for (let at = 0, value = 0; ; at++) {
    const [code, yes, no, k] = [
      filter.readUInt16LE(at * 8),
      filter[at * 8 + 2]!,
      filter[at * 8 + 3]!,
      filter.readUInt32LE(at * 8 + 4),
    ];
    if (code === 0x06) return k;
    if (code === 0x20) value = data[k]! >>> 0;
    else {
      const holds = { 21: value === k, 37: value > k, 53: value >= k, 69: (value & k) !== 0 }[code];
      assert.notEqual(holds, undefined, `unknown instruction ${code}`);
      at += holds ? yes : no;
    }
  }
}

describe('the filter of system calls', () => {
  const filter = renderSeccompFilter();
  const X64 = 0xc000003e;
  const [ALLOW, UNKNOWN, REFUSE, KILL] = [0x7fff0000, 0x00050026, 0x00050001, 0x80000000];

  test('lets through what is listed, and nothing else of 1,000 numbers', () => {
    const listed = new Set<number>(Object.values(ALLOWED_SYSCALLS));
    for (let number = 0; number < 1_000; number++) {
      const argument = number === ALLOWED_SYSCALLS.socket ? 1 : 0;
      assert.equal(
        judge(filter, X64, number, argument),
        listed.has(number) ? ALLOW : UNKNOWN,
        String(number),
      );
    }
  });

  test('looks into clone, socket and ioctl', () => {
    const { clone, socket, ioctl } = ALLOWED_SYSCALLS;
    assert.equal(judge(filter, X64, clone, 0x01200011), ALLOW);
    for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
      assert.equal(judge(filter, X64, clone, flag | 17), REFUSE);
    assert.deepEqual(
      [1, 2, 10, 0, 16, 17, 38, 40].map((family) => judge(filter, X64, socket, family)),
      [ALLOW, ALLOW, ALLOW, REFUSE, REFUSE, REFUSE, REFUSE, REFUSE],
    );
    assert.deepEqual(
      [judge(filter, X64, ioctl, 0, 0x5401), judge(filter, X64, ioctl, 0, 0x5412)],
      [ALLOW, REFUSE],
    );
  });

  test('refuses other interfaces of the same kernel', () => {
    assert.equal(judge(filter, 0x40000003, 11), KILL);
    assert.equal(judge(filter, X64, 0x40000000 + 1), UNKNOWN);
  });

  test('ranges hold the same numbers', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(80)), (numbers) => {
        const ranges = rangesOf(numbers);
        const all = ranges.flatMap(([first, last]) =>
          Array.from({ length: last - first + 1 }, (_, n) => first + n),
        );
        assert.deepEqual(
          all,
          numbers.toSorted((a, b) => a - b),
        );
      }),
    );
  });
});

describe('control groups', () => {
  const line = (at: string, type: string, options: string) =>
    `30 20 0:26 / ${at} rw,relatime - ${type} ${type} rw,${options}`;

  test('version 2 at the top of the tree, where it has the controllers', () => {
    const mounts = line('/sys/fs/cgroup', 'cgroup2', 'nsdelegate');
    const all = (group: string) =>
      group === '/sys/fs/cgroup' ? 'cpuset cpu io memory pids\n' : 'memory pids';
    const top = { version: 2, base: '/sys/fs/cgroup' };
    for (const path of ['/system.slice/a.service', '/user.slice/session-1.scope', '/'])
      assert.deepEqual(decideTrees(mounts, `0::${path}\n`, all), top);
    assert.equal(
      decideTrees(mounts, '0::/', () => 'cpu pids'),
      undefined,
    );
    assert.equal(
      decideTrees('', '', () => ''),
      undefined,
    );
  });

  test('version 2 below the service, where its group is left to it, and the daemon in one of its own', () => {
    const mounts = line('/sys/fs/cgroup', 'cgroup2', 'nsdelegate');
    const base = '/sys/fs/cgroup/system.slice/a.service';
    for (const path of ['/system.slice/a.service', '/system.slice/a.service/daemon'])
      assert.deepEqual(
        decideTrees(mounts, `0::${path}\n`, () => 'cpu memory pids'),
        { version: 2, base, own: `${base}/daemon` },
      );
  });

  test('version 1 below the groups of the process itself, controllers together or apart', () => {
    const mounts = [
      line('/sys/fs/cgroup/cpu,cpuacct', 'cgroup', 'cpu,cpuacct'),
      line('/sys/fs/cgroup/memory', 'cgroup', 'memory'),
      line('/sys/fs/cgroup/pi\\040ds', 'cgroup', 'pids'),
      line('/sys/fs/cgroup/unified', 'cgroup2', ''),
    ].join('\n');
    const own = '9:pids:/user\n4:memory:/user/a\n1:cpu,cpuacct:/\n0::/\n';
    assert.deepEqual(
      decideTrees(mounts, own, () => 'hugetlb'),
      {
        version: 1,
        bases: {
          memory: '/sys/fs/cgroup/memory/user/a',
          pids: '/sys/fs/cgroup/pi ds/user',
          cpu: '/sys/fs/cgroup/cpu,cpuacct/',
        },
      },
    );
  });

  test('no text makes it fail', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (mounts, own, controllers) => {
        decideTrees(mounts, own, () => controllers);
      }),
    );
  });
});

test('the command gives a sandbox no network, no rights, and nothing but what is mounted', () => {
  const command = sandboxCommand({
    mounts: [{ from: '/opt/node', to: '/usr/bin/node' }],
    argv: ['/usr/bin/node', '/skerry/node.mjs'],
    uid: 70_000,
    groups: ['/sys/fs/cgroup/a'],
    filterPath: '/filter',
  });
  const text = command.join(' ');
  for (const part of [
    '--unshare-net',
    '--unshare-pid',
    '--unshare-ipc',
    '--die-with-parent',
    '--clearenv',
    '--cap-drop ALL',
    '--seccomp 9',
    '--reuid 70000',
    '--clear-groups',
    '--bounding-set=-all',
    '--no-new-privs',
  ])
    assert.ok(text.includes(part), part);
  assert.deepEqual(
    command.flatMap((one, index) =>
      (one === '--ro-bind' || one === '--bind') && command[index + 1] !== '/dev/null'
        ? [command.slice(index, index + 3)]
        : [],
    ),
    [['--ro-bind', '/opt/node', '/usr/bin/node']],
  );
});
