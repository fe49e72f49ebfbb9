import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, pause, Remarks } from '@skerry/kit';
import { AppError, type InstanceView } from '@skerry/protocol';
import { checkCaughtUp, createSeldomCheck, type SyncCheck } from '../caught-up.ts';
import type { Instances } from './instances.ts';

export interface WatchOptions {
  readonly core: CoreClient;
  readonly sync: SyncCheck;
  readonly instances: Instances;
  readonly nodeId: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told of whoever changed an aggregate: anybody. */
  readonly onAggregate: (sender: string) => void;
}

const RETRY_BASE_MS = 200;
const RETRY_MAX_MS = 10_000;
/** The stream carries every change; the full list is the safety net. */
const FULL_SYNC_EVERY_MS = 300_000;
const UNREADABLE =
  'the core node tells of an instance in a form that cannot be read; its machine is left alone';

/** Follows what a core node says: the full list, then every change. Ends with the signal. */
export async function watchInstances(options: WatchOptions): Promise<void> {
  const { log, signal } = options;
  const failures = new Failures({
    log,
    what: 'the core node cannot be followed; instances keep running, retrying',
    baseMs: RETRY_BASE_MS,
    maxMs: RETRY_MAX_MS,
  });
  const remarks = new Remarks(log);
  while (!signal.aborted) {
    const round = new AbortController();
    const timer = setTimeout(() => round.abort(), FULL_SYNC_EVERY_MS);
    try {
      const cursor = await syncAll(options, remarks);
      if (failures.count > 0) log.info('the core node answers again');
      failures.clear();
      await followEvents(options, cursor, AbortSignal.any([signal, round.signal]));
    } catch (error) {
      if (signal.aborted) return;
      await pause(failures.note(error), signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Whether the core node knows that the owner took the instance back, as opposed to not knowing it. */
async function wasForgotten(core: CoreClient, instanceId: string): Promise<boolean> {
  try {
    return (await core.getMessageStatus(instanceId)).status === 'forgotten';
  } catch (error) {
    if (error instanceof AppError && error.code === 'MESSAGE_NOT_FOUND') return false;
    throw error;
  }
}

async function syncAll({ core, sync, instances, nodeId }: WatchOptions, remarks: Remarks): Promise<string> {
  await checkCaughtUp(sync);
  const { instances: views, unreadable, cursor } = await core.readAllInstances({ node_id: nodeId });
  const remark = remarks.begin();
  await instances.applyAll(views);
  const listed = new Set<string | undefined>(views.map((view) => view.instance_id));
  for (const { instanceId, error } of unreadable) {
    listed.add(instanceId);
    remark({ instance: instanceId, why: error.message }, UNREADABLE);
  }
  for (const id of instances.ids()) {
    if (listed.has(id)) continue;
    try {
      await instances.apply(await core.getInstance(id));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'UNEXPECTED_ANSWER') {
        remark({ instance: id, why: error.message }, UNREADABLE);
        continue;
      }
      if (error.code !== 'INSTANCE_NOT_FOUND') throw error;
      if (await wasForgotten(core, id)) {
        await instances.forget(id);
        continue;
      }
      // A core node that lost its memory is no reason to end a machine.
      remark({ instance: id }, 'the core node does not know an instance of this node, which is left alone');
    }
  }
  return cursor;
}

async function followEvents(
  { core, sync, instances, nodeId, onAggregate, log }: WatchOptions,
  cursor: string,
  signal: AbortSignal,
): Promise<void> {
  const onUnreadable = (kind: string, { message: why }: AppError) => {
    if (kind === 'instance') log.warn({ why }, UNREADABLE);
  };
  const checkLag = createSeldomCheck(sync);
  const isOwn = (view: InstanceView) => view.node_id === nodeId || instances.has(view.instance_id);
  for await (const event of core.events({ cursor, signal, onUnreadable })) {
    if (event.kind === 'instance' && isOwn(event.data)) await checkLag();
    if (event.kind === 'instance') await instances.apply(event.data);
    if (event.kind === 'message' && event.data.type === 'AGGREGATE') onAggregate(event.data.sender);
    if (event.kind !== 'instance_removed') continue;
    const { instance_id: id } = event.data;
    if (instances.has(id)) {
      // By what the core node lacks, a FORGET may not count.
      await checkLag();
      // It may be gone for as long as a core node decides again what it reads.
      if (!(await wasForgotten(core, id))) continue;
    }
    await instances.forget(id);
  }
}
