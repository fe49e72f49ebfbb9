import { call, type ListedMessage, verifyListed } from '@skerry/client';
import { AppError, type Fields, fieldsOf, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';

/** Where somebody placed a machine, with their own signature. */
export interface Allocation {
  readonly itemHash: string;
  readonly sender: string;
  readonly ipv6: string;
  /** Unix milliseconds. */
  readonly decidedMs: number;
  readonly content: Fields;
}

/** A machine that moves more often has older ones, too. */
const ALLOCATIONS_READ = 20;

async function readAllocation(coreUrl: string, row: ListedMessage): Promise<Allocation> {
  const { itemHash, sender, content: outer } = await verifyListed({ coreUrl }, row);
  const content = fieldsOf(fieldsOf(outer).content);
  const { ipv6, decided_at_ms: decidedMs } = content;
  if (itemHash !== row.item_hash || typeof ipv6 !== 'string' || typeof decidedMs !== 'number')
    throw new AppError('INVALID_CONTENT', `${row.item_hash} is no allocation`);
  return { itemHash, sender, ipv6, decidedMs, content };
}

/**
 * The newest allocations of a machine, by anybody; `isWhole`: there are no more. Throws where the core node lists what is
 * none, or was not signed so.
 */
export async function readAllocations(
  coreUrl: string,
  id: string,
): Promise<{ readonly allocations: readonly Allocation[]; readonly isWhole: boolean }> {
  const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, {
    query: {
      refs: id,
      contentTypes: NETWORK_POST.allocation,
      pagination: ALLOCATIONS_READ,
      bodies: 'shared',
    },
  });
  const allocations: Allocation[] = [];
  for (const row of messages) allocations.push(await readAllocation(coreUrl, row));
  return { allocations, isWhole: messages.length < ALLOCATIONS_READ };
}
