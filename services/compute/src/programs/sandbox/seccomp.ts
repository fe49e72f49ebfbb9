import { ALLOWED_SYSCALLS } from './syscalls.ts';

/** One instruction of classic BPF (linux/filter.h); jumps name a label, or fall through. */
interface Step {
  readonly code: number;
  readonly value: number;
  readonly yes?: string;
  readonly no?: string;
}

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_GREATER = 0x25;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in struct seccomp_data (linux/seccomp.h). Of an argument, its lower half. */
const AT = { syscall: 0, architecture: 4, argument0: 16, argument1: 24 } as const;

const AUDIT_ARCH_X86_64 = 0xc000003e;
/** System calls of the x32 interface have this bit. */
const X32_BIT = 0x40000000;
const VERDICT = {
  allow: 0x7fff0000,
  /** ENOSYS: the same as on a kernel that does not know the call, which every runtime copes with. */
  unknown: 0x00050000 | 38,
  /** EPERM */
  refuse: 0x00050000 | 1,
  kill: 0x80000000,
} as const;

/** Every CLONE_NEW* flag that clone(2) takes. */
const NEW_NAMESPACE_FLAGS = 0x7e020000;
/** AF_UNIX, AF_INET, AF_INET6. Others reach beyond the network namespace (AF_VSOCK) or into little-used code of the kernel. */
const SOCKET_FAMILIES = [1, 2, 10] as const;
/** Typing into a terminal: TIOCSTI, TIOCLINUX. */
const REFUSED_IOCTLS = [0x5412, 0x541c] as const;

/** Consecutive numbers as ranges, in order. */
export function rangesOf(numbers: readonly number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

const load = (at: number): Step => ({ code: LOAD_WORD, value: at });
const is = (value: number, yes: string): Step => ({ code: JUMP_IF_EQUAL, value, yes });
const give = (value: number): Step => ({ code: RETURN, value });

function listSteps(): (Step | string)[] {
  const { clone, socket, ioctl, ...plain } = ALLOWED_SYSCALLS;
  const ranges = rangesOf(Object.values(plain)).flatMap(([first, last], index): (Step | string)[] => [
    { code: JUMP_IF_AT_LEAST, value: first, no: `after ${index}` },
    { code: JUMP_IF_GREATER, value: last, no: 'allow' },
    `after ${index}`,
  ]);
  return [
    load(AT.architecture),
    { code: JUMP_IF_EQUAL, value: AUDIT_ARCH_X86_64, no: 'kill' },
    load(AT.syscall),
    { code: JUMP_IF_AT_LEAST, value: X32_BIT, yes: 'unknown' },
    is(clone, 'clone'),
    is(socket, 'socket'),
    is(ioctl, 'ioctl'),
    ...ranges,
    'unknown',
    give(VERDICT.unknown),
    'clone',
    load(AT.argument0),
    { code: JUMP_IF_ANY_BIT, value: NEW_NAMESPACE_FLAGS, yes: 'refuse', no: 'allow' },
    'socket',
    load(AT.argument0),
    ...SOCKET_FAMILIES.map((family) => is(family, 'allow')),
    give(VERDICT.refuse),
    'ioctl',
    load(AT.argument1),
    ...REFUSED_IOCTLS.map((request) => is(request, 'refuse')),
    'allow',
    give(VERDICT.allow),
    'refuse',
    give(VERDICT.refuse),
    'kill',
    give(VERDICT.kill),
  ];
}

const STEP_BYTES = 8;
const JUMP_MAX = 255;

/** The filter of system calls, as `bwrap --seccomp` reads it: struct sock_filter after struct sock_filter. */
export function renderSeccompFilter(): Buffer {
  const steps: Step[] = [];
  const labels = new Map<string, number>();
  for (const one of listSteps()) {
    if (typeof one === 'string') labels.set(one, steps.length);
    else steps.push(one);
  }
  const jump = (index: number, label: string | undefined) => {
    if (label === undefined) return 0;
    const distance = labels.get(label)! - index - 1;
    if (!(distance >= 0 && distance <= JUMP_MAX)) throw new RangeError(`no jump to ${label} from ${index}`);
    return distance;
  };
  const filter = Buffer.alloc(steps.length * STEP_BYTES);
  steps.forEach(({ code, value, yes, no }, index) => {
    const at = index * STEP_BYTES;
    filter.writeUInt16LE(code, at);
    filter[at + 2] = jump(index, yes);
    filter[at + 3] = jump(index, no);
    filter.writeUInt32LE(value >>> 0, at + 4);
  });
  return filter;
}
