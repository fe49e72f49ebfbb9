import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { markedEnvironment, newMark, ProcessTree } from './processes.ts';

const NO_ROOT = -1;

/** Hides its command and environment (prctl(2), PR_SET_MM_MAP), as the kernel does while a process becomes another program, until it may be one: then it is `sleep`. */
const BECOMES = `
import ctypes, os, struct, sys
PR_SET_MM, PR_SET_MM_MAP, NO_FILE = 35, 14, 0xffffffff
fields = list(map(int, open('/proc/self/stat').read().rsplit(')', 1)[1].split()[1:]))
code, (data_start, data_end, brk_start, arg, _, env, _) = fields[22:25], fields[41:48]
libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = ctypes.c_ulong
places = code[:2] + [data_start, data_end, brk_start, libc.sbrk(0), code[2], arg, arg, env, env]
map = struct.pack('11Q Q II', *places, 0, 0, NO_FILE)
if libc.prctl(PR_SET_MM, PR_SET_MM_MAP, map, ctypes.c_ulong(len(map)), 0): sys.exit(f'prctl: {ctypes.get_errno()}')
print('hidden', flush=True)
sys.stdin.readline()
os.execvp('sleep', ['sleep', '1000'])
`;

test('what a test starts with the arguments of its process has the memory and the threads that it always has', () => {
  assert.deepEqual(
    process.execArgv.filter((argument) => /reporter|semi-space|v8-pool/.test(argument)),
    [],
  );
});

test('a process that becomes another program while it is looked at is found by its mark', async () => {
  const mark = newMark();
  const tree = new ProcessTree(NO_ROOT, mark);
  const child = spawn('python3', ['-c', BECOMES], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: markedEnvironment(mark, process.env),
  });
  try {
    await awaitOutput(child, 'what becomes another program', hear(child, ['stderr']));
    const left = tree.waitForEnd(0);
    child.stdin.end('\n');
    assert.deepEqual(
      (await left).map(({ command }) => command),
      ['sleep 1000'],
    );
  } finally {
    await endProcess(child, 'SIGKILL');
  }
});
