import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { AppError } from '@skerry/protocol';
import { runService, type Service } from '../daemon/service.ts';

/** A service whose start goes as TEST_START says; what it began it leaves open. For tests that start it as a process. */
const service: Service<object> = {
  name: 'test',
  summary: 'a service of a test',
  config: { prefix: 'TEST_', settings: {} },
  keeping: { entries: [] },
  async start(_config, { log, signal, replaced, longStep }) {
    const open = createServer().listen(0, '127.0.0.1');
    switch (process.env.TEST_START) {
      case 'fails':
        throw new Error('its database is away');
      case 'fails after long': {
        using _ = longStep?.('opening');
        throw new Error('its database is away');
      }
      case 'runs a program':
        log.info(
          execFileSync('sh', ['-c', 'echo "SHELL [$NOTIFY_SOCKET $WATCHDOG_USEC $WATCHDOG_PID]"'], {
            encoding: 'utf8',
          }),
        );
        break;
      case 'is replaced':
        setImmediate(() => replaced?.('there is another'));
        break;
      case 'is refused':
        throw new AppError('INVALID_PARAMETERS', 'a setting is wrong');
      case 'is older than its data':
        throw new AppError('DATABASE_INCOMPATIBLE', 'a newer release migrated it');
      case 'lasts':
        process.send?.({ started: true });
        await new Promise<never>((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
    }
    // Stopping does not close what it opened.
    return {
      urls: ['http://127.0.0.1'],
      [Symbol.asyncDispose]: async () => log.info({ listening: open.listening }, 'let go'),
    };
  },
};

process.exitCode = await runService(service, process.env);
