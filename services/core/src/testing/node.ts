import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { ONE_V8_THREAD } from '@skerry/kit/threads';

const PROCESS = fileURLToPath(new URL('./process.ts', import.meta.url));

/** A core node as a process of its own; killed at its disposal, unless it has ended. */
export interface NodeProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
  /** Sends the signal, and resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/**
 * @param databaseUrl a server to use; the embedded one below `home` where left out
 * @param settings further variables of its environment
 * @param options how the process is started, where not as Node itself
 */
export async function startNode(
  home: string,
  databaseUrl?: string,
  settings: Readonly<Record<string, string>> = {},
  options: Pick<ForkOptions, 'execPath' | 'execArgv' | 'stdio'> = {},
): Promise<NodeProcess> {
  const child = fork(PROCESS, [], {
    env: {
      ...process.env,
      SKERRY_HOME: home,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_LOG_LEVEL: 'fatal',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // As it is started where it is installed.
    execArgv: [...process.execArgv, ONE_V8_THREAD],
    ...options,
  });
  // Its standard output may be for whoever asked for a pipe.
  const heard = options.stdio === undefined ? hear(child) : undefined;
  const { urls } = await awaitReady<{ urls: string[] }>(child, 'the core node', heard);
  const end = (signal: NodeJS.Signals) => endProcess(child, signal);
  return { child, url: urls[0]!, end, [Symbol.asyncDispose]: () => end('SIGKILL') };
}
