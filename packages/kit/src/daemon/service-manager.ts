import { dropVariables, type Environment } from './config.ts';
import { openSocket, type SendNotice, useHelper } from './notify-socket.ts';

/** sd_notify(3), sd_watchdog_enabled(3). The last one is not heeded: whoever still has the others is meant. */
const VARIABLES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const;

/** While a long step of the start lasts, this is said so often, and asks for so much more time. */
const STEP_SAY_MS = 20_000;
const STEP_EXTEND_MS = 120_000;
/** A manager that is busy for a moment gets a notice a little later. */
const TRIES_MAX = 20;
const RETRY_MS = 100;

const MICROSECONDS = 1000;

/** How often a service says that it lives: twice in the time after which it would be ended. undefined: it need not. */
export function watchdogMs(microseconds: string | undefined): number | undefined {
  const value = Number(microseconds);
  return Number.isSafeInteger(value) && value > 0 ? Math.max(1, value / MICROSECONDS / 2) : undefined;
}

/** A status is one line. */
const oneLine = (text: string) => text.replace(/[\r\n]+/g, ' ');

/**
 * The service manager (systemd) that started this process, which wants to know how the service is. Where there is none, nothing
 * is said.
 */
export class ServiceManager {
  readonly #send: SendNotice;
  #last = Promise.resolve();
  #watchdog: NodeJS.Timeout | undefined;

  constructor(send: SendNotice) {
    this.#send = send;
  }

  /** Takes the manager's variables out of the process's environment: programs that it runs speak for themselves alone. */
  static async find(environment: Environment): Promise<ServiceManager | undefined> {
    const { NOTIFY_SOCKET: path, WATCHDOG_USEC: microseconds } = environment;
    dropVariables(VARIABLES);
    // The other kinds of address (vsock) belong to machines, not to services.
    if (path === undefined || !/^[/@]/.test(path)) return undefined;
    const manager = new ServiceManager(await openSocket(path).catch(() => useHelper(path)));
    const everyMs = watchdogMs(microseconds);
    if (everyMs !== undefined)
      manager.#watchdog = setInterval(() => manager.#say('WATCHDOG=1'), everyMs).unref();
    return manager;
  }

  /** Resolves when it is said, in turn. */
  #say(...lines: string[]): Promise<void> {
    this.#last = this.#last.then(async () => {
      for (let turn = 0; turn < TRIES_MAX && !(await this.#send(lines.join('\n'))); turn++)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    });
    return this.#last;
  }

  /** A successor that was started beside the old process is the main one from here on. */
  ready(status: string): Promise<void> {
    return this.#say(`MAINPID=${process.pid}`, 'READY=1', `STATUS=${oneLine(status)}`);
  }

  stopping(status: string): Promise<void> {
    return this.#say('STOPPING=1', `STATUS=${oneLine(status)}`);
  }

  status(status: string): Promise<void> {
    return this.#say(`STATUS=${oneLine(status)}`);
  }

  /** Something that may take longer than the manager would wait for a start. */
  longStep(what: string): Disposable {
    const say = () =>
      void this.#say(`STATUS=${oneLine(what)}`, `EXTEND_TIMEOUT_USEC=${STEP_EXTEND_MS * MICROSECONDS}`);
    say();
    const timer = setInterval(say, STEP_SAY_MS).unref();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#watchdog);
  }
}
