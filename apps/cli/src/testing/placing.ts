import { join } from 'node:path';
import { createSigner } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { startCore } from './core.ts';
import { startDaemon } from './parts.ts';

type Settings = Readonly<Record<string, string>>;

/** A core node in this process and the scheduler that it trusts in one of its own, which looks at nodes every second. */
export async function startPlacing(dir: string, settings: { core?: Settings; scheduler?: Settings } = {}) {
  await using stack = new AsyncDisposableStack();
  const { address: scheduler } = createSigner(await loadOrCreateKeyFile(join(dir, 'scheduler', 'key')));
  const { url: coreUrl } = stack.use(
    await startCore(dir, { SKERRY_CORE_SCHEDULERS: scheduler, ...settings.core }),
  );
  const { url: schedulerUrl } = stack.use(
    await startDaemon('scheduler', {
      SKERRY_SCHEDULER_DATA_DIR: join(dir, 'scheduler'),
      SKERRY_SCHEDULER_HOST: '127.0.0.1',
      SKERRY_SCHEDULER_PORT: '0',
      SKERRY_SCHEDULER_CORE_URL: coreUrl,
      SKERRY_SCHEDULER_PROBE_INTERVAL_SECONDS: '1',
      ...settings.scheduler,
    }),
  );
  const owned = stack.move();
  return { scheduler, coreUrl, schedulerUrl, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
