import {
  type CoreClient,
  callRows,
  isLaterSaid,
  readPages,
  readSaidAllocation,
  type SaidAllocation,
} from '@skerry/client';
import type { Logger } from '@skerry/kit';
import { AppError, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { applyInstance, isUnsaid, type View } from '../view.ts';

/** The most that a core node gives with what proves them: what they said is shown no other way. */
const PER_PAGE = 100;
const PAGES_MAX = 2_000;

type Latest = Map<string, SaidAllocation>;

/** The last word of the schedulers that the core node heeds, among what was taken back. @param into by instance: those that are wanted */
async function readTakenBack(core: CoreClient, into: Latest, isWanted: (id: string) => boolean) {
  const { trust } = await core.getInfo();
  const addresses = trust.schedulers.value.join(',');
  if (addresses === '') return true;
  const list = NETWORK_LISTS_API.listNetworkMessages;
  const filter = {
    ...{ msgTypes: 'POST', contentTypes: NETWORK_POST.allocation, msgStatuses: 'forgotten', addresses },
    ...{ pagination: PER_PAGE, bodies: 'shared' as const },
  };
  const read = (place: object) =>
    callRows(core.url, list, 'messages', { query: { ...filter, ...place } }, core.options);
  let pages = 0;
  for await (const { messages } of readPages(read)) {
    for (const row of messages) {
      const one = await readSaidAllocation(core.url, row);
      if (!one || !isWanted(one.content.instance_id)) continue;
      const known = into.get(one.content.instance_id);
      if (!known || isLaterSaid(one, known)) into.set(one.content.instance_id, one);
    }
    if (++pages === PAGES_MAX) return false;
  }
  return true;
}

/**
 * Keeps instances where they were whose placements were taken back while no scheduler was there to see it: core nodes have what those said for
 * a day. Nothing is asked where each instance is placed, or waits by a scheduler's word.
 *
 * @param view gets the places
 */
export async function keepTakenBack(core: CoreClient, view: View, log: Logger): Promise<void> {
  const unsaid = new Map(Array.from(view.instances).filter(([, one]) => isUnsaid(one)));
  if (unsaid.size === 0) return;
  const latest: Latest = new Map();
  const isTooCostly = (error: unknown) => error instanceof AppError && error.code === 'LIST_TOO_COSTLY';
  const isWhole = await readTakenBack(core, latest, (id) => unsaid.has(id)).catch((error: unknown) => {
    if (isTooCostly(error)) return false;
    throw error;
  });
  if (!isWhole) log.warn('the core node has more placements that were taken back than can be read');
  for (const [id, { content }] of latest) {
    const { node_id: nodeId, node_address: nodeAddress, ipv6 } = content;
    const told = unsaid.get(id)!;
    applyInstance(view, told, { ...told, nodeId, nodeAddress, ipv6 });
  }
  if (latest.size > 0)
    log.warn(
      { instances: latest.size },
      'placements were taken back (FORGET): the instances stay where they were; if you did not do that, a key has leaked',
    );
}
