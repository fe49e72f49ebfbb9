import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import { fillDisk, inDirectory, onDiskOf } from '../../testing/directory.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import { Triggers, type TriggersOptions } from './triggers.ts';

const FILTERS = [{ channel: 'news' }];
const HASH = 'a'.repeat(64);

/** A core node whose log has one message. */
const core = {
  async *events({ signal }: { signal: AbortSignal }) {
    const data = { item_hash: HASH, type: 'POST', sender: '0x1', channel: 'news', timestamp: 1 };
    yield { kind: 'message', cursor: '1', data: { ...data, content_type: 'note' } };
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  },
  getMessage: async () => ({ status: 'processed', message: { channel: 'news' } }),
};

test('programs that do not end when they are called by a message keep no others from being called', () =>
  inDirectory(async (directory) => {
    const ending = new AbortController();
    const called: string[] = [];
    const programs = {
      isKept: (program: string) => program === 'kept',
      /** Sleeps until its call is ended. */
      async run(program: string, _call: unknown, _client: string, ended?: AbortSignal) {
        called.push(program);
        await new Promise((resolve) => ended?.addEventListener('abort', resolve, { once: true }));
        throw ended?.reason;
      },
    };
    const triggers = await Triggers.open({
      ...{ core, programs, directory, log: createLogger('test', 'silent'), signal: ending.signal },
      contendedMs: 1,
    } as unknown as TriggersOptions);
    const names = [
      'kept',
      ...Array.from({ length: 2 * PROGRAM_LIMITS.messageCalls }, (_, index) => `${index}`),
    ];
    triggers.set(new Map(names.map((name) => [name, FILTERS] as const)), '0');
    const working = triggers.work();
    const count = () => new Set(called).size;
    await until('each was called', count, (seen) => seen === names.length, { limitMs: 60_000 });
    const first = called.slice(0, names.length);
    assert.deepEqual([...new Set(first)], first, 'each of them once before any of them again');
    assert.equal(
      called.filter((name) => name === 'kept').length,
      1,
      'who has a sandbox to itself is not ended',
    );
    ending.abort();
    await working;
  }));

test('a core node that is away and a clock that was ahead take no message from a program', () =>
  inDirectory(async (directory) => {
    const ending = new AbortController();
    const path = join(directory, 'messages-to-programs.json');
    const last = { program: 'p', message: HASH, failures: PROGRAM_LIMITS.messageTries - 1 };
    // As an earlier release kept it.
    const kept = { ...last, dueAtMs: Date.now() + 365 * 86_400_000 };
    await writeFile(path, JSON.stringify({ cursor: '0', waiting: [kept] }));
    let told = 0;
    const log = { debug: () => void told++ };
    const away = {
      events: core.events,
      async getMessage() {
        throw new AppError('UPSTREAM_UNAVAILABLE', 'the core node is away');
      },
    };
    const programs = { isKept: () => false };
    const triggers = await Triggers.open({
      ...{ core: away, programs, directory, log, signal: ending.signal },
    } as unknown as TriggersOptions);
    triggers.set(new Map([['p', [{ channel: 'another' }]]]), '0');
    const working = triggers.work();
    const read = async () => JSON.parse(await readFile(path, 'utf8')) as unknown;
    await until('it could not be read', () => told > 0);
    ending.abort();
    await working;
    // The release before reads it, too.
    assert.deepEqual(await read(), { cursor: '1', waiting: [{ ...last, dueAtMs: 0 }] });
  }));

test('a program that cannot be called for what it asks for is given up; for what passes, it waits, and nothing is written', () =>
  inDirectory(async (directory) => {
    const path = join(directory, 'messages-to-programs.json');
    const failures = PROGRAM_LIMITS.messageTries - 1;
    const keptOf = (program: string) => ({ program, message: HASH, failures, dueAtMs: 0 });
    const codes = {
      large: 'FILE_TOO_LARGE',
      heavy: 'NO_RUNNER',
      broken: 'INTERNAL',
      waits: 'OVERLOADED',
      full: 'NO_RUNNER',
      unread: 'INTERNAL',
    } as const;
    const quiet = {
      ...core,
      async *events({ signal }: { signal: AbortSignal }) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
    };
    /** Calls each of these once, and gives how many still wait. */
    const callEach = async (names: readonly (keyof typeof codes)[], reader: object = quiet) => {
      await writeFile(path, `${JSON.stringify({ cursor: '0', waiting: names.map(keptOf) })}\n`);
      const { ino } = await stat(path);
      const ending = new AbortController();
      const failed = new Set<string>();
      const programs = {
        isKept: () => false,
        async run(program: keyof typeof codes) {
          const cause = program === 'full' ? new AppError('STORAGE_FULL', 'the disk is full') : undefined;
          throw new AppError(codes[program], 'on purpose', { cause });
        },
      };
      const log = { debug: ({ program }: { program: string }) => void failed.add(program) };
      const triggers = await Triggers.open({
        ...{ core: reader, programs, directory, log, signal: ending.signal },
      } as unknown as TriggersOptions);
      triggers.set(new Map(names.map((name) => [name, FILTERS] as const)), '0');
      const working = triggers.work();
      await until('each was called', () => failed.size === names.length);
      ending.abort();
      await working;
      return { waiting: triggers.waiting, isWritten: (await stat(path)).ino !== ino };
    };
    assert.deepEqual(await callEach(['large', 'heavy', 'broken']), { waiting: 0, isWritten: true });
    assert.deepEqual(await callEach(['waits', 'full']), { waiting: 2, isWritten: false });
    const silent = {
      ...quiet,
      getMessage: async () => {
        throw new AppError('INTERNAL', 'of the core node');
      },
    };
    assert.deepEqual(await callEach(['unread'], silent), { waiting: 1, isWritten: false });
  }));

test('a full disk is told of now and then, however often what waits could not be stored', () =>
  onDiskOf(1, async (directory) => {
    const ending = new AbortController();
    const names = Array.from({ length: 16 }, (_, index) => `${index}`);
    const failed = new Set<string>();
    let warned = 0;
    const log = {
      info() {},
      warn: () => void warned++,
      debug: ({ program }: { program: string }) => void failed.add(program),
    };
    const programs = {
      isKept: () => false,
      async run() {
        throw new AppError('PROGRAM_CRASHED', 'on purpose');
      },
    };
    const triggers = await Triggers.open({
      ...{ core, programs, directory, log, signal: ending.signal },
    } as unknown as TriggersOptions);
    await fillDisk(directory);
    triggers.set(new Map(names.map((name) => [name, FILTERS] as const)), '0');
    const working = triggers.work();
    // Each of these is noted in the file.
    await until('each was called', () => failed.size === names.length);
    ending.abort();
    await working;
    assert.ok(warned > 0 && warned < names.length, `${warned}`);
  }));
