import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import {
  NETWORK_CHANNEL,
  NETWORK_POST,
  type NodeContent,
  nodeIdOf,
  type RunnersContent,
} from '@skerry/protocol';
import { signers, type TestCore } from './core.ts';

const SKERRY = fileURLToPath(new URL('../../../../apps/cli/bin/skerry.js', import.meta.url));

/** Sandboxes are made as root on Linux; elsewhere no compute node runs programs. */
export const canRunPrograms =
  process.platform === 'linux' && process.arch === 'x64' && process.geteuid?.() === 0;

/** A real compute node, as a process of its own, that follows a test's core node and runs programs for it. */
export class TestRunner implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #home: string;

  private constructor(child: ChildProcess, home: string) {
    this.#child = child;
    this.#home = home;
  }

  /** Resolves when the scheduler has said that programs are sent to it. */
  static async start(core: TestCore): Promise<TestRunner> {
    const coreUrl = await core.listen();
    const home = await mkdtemp(join(tmpdir(), 'skerry-runner-'));
    const child = spawn(process.execPath, [SKERRY, 'compute'], {
      env: {
        ...bareEnvironment(),
        SKERRY_HOME: home,
        SKERRY_COMPUTE_HOST: '127.0.0.1',
        SKERRY_COMPUTE_PORT: '0',
        SKERRY_COMPUTE_CORE_URL: coreUrl,
        SKERRY_COMPUTE_PROGRAM_SPARES: '0',
        SKERRY_LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    await using stack = new AsyncDisposableStack();
    const runner = stack.use(new TestRunner(child, home));
    await awaitReady(child, 'the compute node', hear(child));
    const { address, content } = await announcementTo(core);
    const runtimes = content.features.flatMap((one) => (one.startsWith('program:') ? [one.slice(8)] : []));
    const list: RunnersContent = {
      runners: [{ node_id: nodeIdOf(address), node_address: address, url: content.url, runtimes }],
      decided_at_ms: Date.now(),
    };
    await core.send(signers.scheduler, {
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: { type: NETWORK_POST.runners, content: list },
    });
    stack.move();
    return runner;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#child, 'SIGTERM');
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** The announcement of the first node that there is. */
async function announcementTo(core: TestCore): Promise<{ address: string; content: NodeContent }> {
  const { events, signal } = core.rooms;
  for (let cursor = '0'; ; ) {
    const { wakes } = events;
    for (const event of await events.read(cursor, 100)) {
      cursor = event.cursor;
      if (event.kind !== 'message' || event.data.content_type !== NETWORK_POST.node) continue;
      const { body } = await core.get(`/messages/${event.data.item_hash}`);
      return { address: event.data.sender, content: body.content.content };
    }
    signal.throwIfAborted();
    await events.waitForMore(wakes, signal);
  }
}
