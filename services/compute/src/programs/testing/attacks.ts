import type { RuntimeName } from '@skerry/protocol';
import type { TestProgram } from './setup.ts';

/** Something that a stranger's program tries, and what must come of it. */
export interface Attack extends TestProgram {
  readonly name: string;
  readonly runtime: RuntimeName;
  readonly code: string | Buffer;
  /** The status of the answer, or the code of the failure; several where it meets one bound or another first. */
  readonly expected: string | readonly string[];
  /** Must be in the answer, the traceback or the reason. */
  readonly says: RegExp;
}

/** Python that does one thing and answers how it ended. */
const tries = (...lines: string[]) => `import ctypes, os, socket, errno
libc = ctypes.CDLL(None, use_errno=True)
def system(number, *args):
  result = libc.syscall(number, *args)
  return 'done' if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(what):
  try:
    return str(what())
  except OSError as error:
    return errno.errorcode.get(error.errno, str(error))
  except ValueError as error:
    return str(error)
def main(variables):
${lines.map((line) => `  ${line}`).join('\n')}
`;

const python = (
  name: string,
  lines: string[],
  expected: Attack['expected'],
  says: RegExp,
  more: TestProgram = {},
): Attack => ({
  ...{ name, runtime: 'python3', code: tries(...lines), expected, says },
  ...more,
});
const node = (
  name: string,
  code: string,
  expected: Attack['expected'],
  says: RegExp,
  more: TestProgram = {},
): Attack => ({
  ...{ name, runtime: 'nodejs', code, expected, says },
  ...more,
});

/** A command of WASI preview 1 (WebAssembly binary format, version 1) whose `_start` has this body. */
export function wasmCommand(...body: number[]): Buffer {
  const section = (id: number, ...bytes: number[]) => [id, bytes.length, ...bytes];
  const name = (text: string) => [text.length, ...Buffer.from(text)];
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0),
    ...section(2, 1, ...name('wasi_snapshot_preview1'), ...name('proc_exit'), 0, 1),
    ...section(3, 1, 0),
    ...section(5, 1, 0, 1),
    ...section(7, 2, ...name('_start'), 0, 1, ...name('memory'), 2, 0),
    ...section(10, 1, body.length + 2, 0, ...body, 0x0b),
  ]);
}

const LOOP = [0x03, 0x40, 0x0c, 0x00, 0x0b];
/** i32.const 16384 (1 GiB), memory.grow, drop; then write to all of it, page after page. */
const GROW_FOR_EVER = [0x03, 0x40, 0x41, 0x10, 0x40, 0x00, 0x1a, 0x0c, 0x00, 0x0b];
const EXIT_3 = [0x41, 0x03, 0x10, 0x00];

const SHORT = { timeoutSeconds: 1 };
const LARGE = { memoryMib: 256 };

export const RESOURCE_ATTACKS: readonly Attack[] = [
  python(
    'forks without end',
    ['while True:', '  attempt(os.fork)'],
    'PROGRAM_TIMED_OUT',
    /within 1 s/,
    SHORT,
  ),
  python(
    'forks until it is refused',
    ['while True:', '  os.fork()'],
    'PROGRAM_FAILED',
    /Resource temporarily/,
    LARGE,
  ),
  node(
    'starts threads without end',
    `const { Worker } = require('node:worker_threads');
     async function main() { for (;;) await new Promise((done) => new Worker('setInterval(()=>{},1e6)', { eval: true }).once('online', done)); }`,
    'PROGRAM_CRASHED',
    /memory limit|the program exited/,
  ),
  python(
    'fills memory',
    ['held = []', 'while True:', '  held.append(bytearray(1 << 20))'],
    'PROGRAM_CRASHED',
    /exceeded its memory limit/,
  ),
  node(
    'fills memory',
    'const held = []; function main() { for (;;) held.push(Buffer.alloc(1 << 20, 1)); }',
    'PROGRAM_CRASHED',
    /exceeded its memory limit/,
  ),
  python(
    'fills the disk',
    ["with open('/tmp/a', 'wb') as file:", '  while True:', "    file.write(b'x' * (1 << 20))"],
    'PROGRAM_FAILED',
    /No space left|File too large/,
    LARGE,
  ),
  python(
    'fills the disk with many files',
    ['count = 0', 'while True:', "  open(f'/tmp/{count}', 'wb').write(b'x' * (1 << 20))", '  count += 1'],
    'PROGRAM_FAILED',
    /No space left/,
    LARGE,
  ),
  python(
    'fills shared memory',
    ["with open('/dev/shm/a', 'wb') as file:", '  while True:', "    file.write(b'x' * (1 << 20))"],
    'PROGRAM_FAILED',
    /No space left/,
    LARGE,
  ),
  python(
    'keeps files open',
    ['held = []', 'while True:', "  held.append(open('/dev/null'))"],
    'PROGRAM_FAILED',
    /Too many open files/,
  ),
  python(
    'writes without end',
    ['while True:', "  print('x' * 65536)"],
    'PROGRAM_OUTPUT_TOO_LARGE',
    /wrote more than/,
  ),
  node(
    'writes without end and without waiting',
    "function main() { for (;;) process.stdout.write('x'.repeat(65536)); }",
    ['PROGRAM_CRASHED', 'PROGRAM_OUTPUT_TOO_LARGE'],
    /memory limit|wrote more/,
  ),
  python(
    'answers too much',
    ["return 'x' * (9 << 20)"],
    'PROGRAM_OUTPUT_TOO_LARGE',
    /answer is larger than/,
    LARGE,
  ),
  python(
    'sleeps past its timeout',
    ['import time', 'time.sleep(60)'],
    'PROGRAM_TIMED_OUT',
    /within 1 s/,
    SHORT,
  ),
  node(
    'computes past its timeout',
    'function main() { for (;;); }',
    'PROGRAM_TIMED_OUT',
    /within 1 s/,
    SHORT,
  ),
  {
    ...node('computes past its timeout', '', 'PROGRAM_TIMED_OUT', /within 1 s/, SHORT),
    runtime: 'wasm',
    code: wasmCommand(...LOOP),
  },
  {
    ...node('fills memory', '', 'PROGRAM_TIMED_OUT', /within 1 s/, SHORT),
    runtime: 'wasm',
    code: wasmCommand(...GROW_FOR_EVER),
  },
  {
    ...node('exits with a failure', '', 'PROGRAM_FAILED', /exit code 3/),
    runtime: 'wasm',
    code: wasmCommand(...EXIT_3),
  },
  python('ends instead of answering', ['os._exit(7)'], 'PROGRAM_CRASHED', /exit code 7/),
  python(
    'kills all that it can',
    ['attempt(lambda: os.kill(-1, 9))', 'attempt(lambda: os.kill(1, 9))', 'os.abort()'],
    'PROGRAM_CRASHED',
    /the program exited/,
  ),
  python(
    'breaks the channel',
    ["os.write(3, b'\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00[]')", 'return 1'],
    'PROGRAM_CRASHED',
    /broke the channel/,
  ),
  python(
    'lies about the size of its answer',
    ["os.write(3, b'\\xff' * 8)", 'return 1'],
    'PROGRAM_OUTPUT_TOO_LARGE',
    /larger than/,
  ),
];

const connects = (family: string, address: string) =>
  `s = socket.socket(socket.${family}); s.settimeout(0.5); found.append(attempt(lambda: s.connect(${address})))`;
const ALL_REFUSED = /^\[("(ENETUNREACH|ECONNREFUSED|EADDRNOTAVAIL|ETIMEDOUT)",? ?)+\]$/;

/** Of sockets that something on the machine listens on: a file, and a name of Linux's alone (unix(7)). */
export interface LocalSockets {
  readonly path: string;
  readonly name: string;
}

/** @param targets addresses and ports of the machine that something listens on */
export function networkAttacks(
  targets: readonly (readonly [string, number])[],
  { path, name }: LocalSockets,
): Attack[] {
  const lines = targets.map(([host, port]) =>
    connects(host.includes(':') ? 'AF_INET6' : 'AF_INET', `('${host}', ${port})`),
  );
  return [
    python('connects to ports of the machine', ['found = []', ...lines, 'return found'], '200', ALL_REFUSED),
    python(
      'connects to the metadata range',
      [
        'found = []',
        connects('AF_INET', "('169.254.169.254', 80)"),
        connects('AF_INET', "('169.254.170.2', 80)"),
        connects('AF_INET6', "('fd00:ec2::254', 80)"),
        'return found',
      ],
      '200',
      ALL_REFUSED,
    ),
    python(
      'connects to the internet',
      [
        'found = []',
        connects('AF_INET', "('1.1.1.1', 443)"),
        connects('AF_INET6', "('2606:4700:4700::1111', 443)"),
        'return found',
      ],
      '200',
      ALL_REFUSED,
    ),
    // Where the machine itself has no network, nothing else proves that the sandbox has none.
    python(
      'has an interface beside its own loopback',
      ["return [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]"],
      '200',
      /^\["lo"\]$/,
    ),
    python(
      'sends to everybody',
      [
        's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)',
        "return attempt(lambda: s.sendto(b'x', ('255.255.255.255', 9)))",
      ],
      '200',
      /ENETUNREACH|EACCES/,
    ),
    python(
      'opens sockets that leave the namespace',
      [
        'return [attempt(lambda: socket.socket(family, kind)) for family, kind in ((40, 1), (16, 3), (17, 3), (38, 5), (31, 1))]',
      ],
      '200',
      /^\["EPERM", "EPERM", "EPERM", "EPERM", "EPERM"\]$/,
    ),
    python(
      'looks for sockets of the machine',
      [
        "paths = [p for p in ('/run/docker.sock', '/run/systemd/private', '/var/run/dbus/system_bus_socket') if os.path.exists(p)]",
        'connect = lambda to: attempt(lambda: socket.socket(socket.AF_UNIX).connect(to))',
        `return [paths, connect('${path}'), connect('\\0' + '${name}')]`,
      ],
      '200',
      /^\[\[\], "ENOENT", "ECONNREFUSED"\]$/,
    ),
  ];
}

/** @param hidden files of the machine that must not be there */
export function machineAttacks(hidden: readonly string[]): Attack[] {
  return [
    python(
      'becomes somebody',
      [
        "status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)",
        "rights = [status[name] for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')]",
        "return [attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)), os.getuid() > 60000, sorted(set(rights)), status['NoNewPrivs'], status['Seccomp']]",
      ],
      '200',
      /^\["EPERM", "EPERM", true, \["0{16}"\], "1", "2"\]$/,
    ),
    python(
      'reads files of the machine',
      [`return [path for path in ${JSON.stringify(hidden)} if os.path.exists(path)]`],
      '200',
      /^\[\]$/,
    ),
    python(
      'writes where it may not',
      [
        "paths = ['/a', '/usr/lib/a', '/skerry/python.py', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/proc/self/oom_score_adj', '/dev/a']",
        'def write(path):',
        '  file = os.open(path, os.O_RDWR | (0 if os.path.exists(path) else os.O_CREAT))',
        '  return os.write(file, b"-1000" if "oom" in path else b"1")',
        'return [path for path in paths if not attempt(lambda: write(path)).startswith("E")]',
      ],
      '200',
      /^\[\]$/,
    ),
    python(
      'enters namespaces, mounts, traces',
      [
        // unshare, setns, mount, pivot_root, ptrace, clone with CLONE_NEWUSER, clone3
        'calls = [(272, 0x10000000), (308, 3, 0), (165, b"none", b"/tmp", b"tmpfs", 0, None), (155, b"/tmp", b"/tmp"), (101, 16, 1, 0, 0), (56, 0x10000011, 0, 0, 0, 0), (435, None, 0)]',
        'return [system(*call) for call in calls]',
      ],
      '200',
      /^\["ENOSYS", "ENOSYS", "ENOSYS", "ENOSYS", "ENOSYS", "EPERM", "ENOSYS"\]$/,
    ),
    python(
      'reaches little-used parts of the kernel',
      [
        // bpf, keyctl, add_key, perf_event_open, userfaultfd, io_uring_setup, init_module, kexec_load, open_by_handle_at, process_vm_readv, personality
        'numbers = (321, 250, 248, 298, 323, 425, 175, 246, 304, 310, 135)',
        'return sorted({system(number, 0, 0, 0, 0, 0) for number in numbers})',
      ],
      '200',
      /^\["ENOSYS"\]$/,
    ),
    python('uses another interface of system calls', ['return system(0x40000000 + 39)'], '200', /^ENOSYS$/),
    python('types into a terminal', ['return system(16, 0, 0x5412, b"x")'], '200', /^EPERM$/),
    python(
      'makes devices',
      [
        "made = attempt(lambda: os.mknod('/tmp/a', 0o60600, os.makedev(8, 0)))",
        "found = [n for n in ('/dev/kvm', '/dev/mem', '/dev/vda', '/dev/net') if os.path.exists(n)]",
        'return [made, found]',
      ],
      '200',
      /^\["EPERM", \[\]\]$/,
    ),
    python(
      'looks for other processes',
      [
        "pids = [name for name in os.listdir('/proc') if name.isdigit()]",
        'return [len(pids) <= 3, attempt(lambda: os.kill(4242, 0))]',
      ],
      '200',
      /^\[true, "ESRCH"\]$/,
    ),
    python(
      'looks for what it inherited',
      [
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))",
        'return [fds, sorted(os.environ)]',
      ],
      '200',
      /^\[\[0, 1, 2, 3\], \["HOME", "LANG", "PATH", "PWD"\]\]$/,
    ),
    python(
      'raises its own limits',
      [
        'import resource',
        'raised = attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)))',
        "return [raised, str(resource.getrlimit(resource.RLIMIT_NOFILE)), os.path.exists('/sys/fs/cgroup'), attempt(lambda: os.nice(-5))]",
      ],
      '200',
      /^\["not allowed to raise maximum limit", "\(256, 256\)", false, "(EPERM|EACCES)"\]$/,
    ),
  ];
}
