import { callRows, type ListedMessage, saysNothing, verifyListed } from '@skerry/client';
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

/** What a row says, of those that may sign it; undefined where somebody else did. */
async function readAllocation(
  coreUrl: string,
  row: ListedMessage,
  signers: readonly string[] | undefined,
): Promise<Allocation | undefined> {
  const { itemHash, sender, content: outer } = await verifyListed({ coreUrl }, row);
  // A node that does not know the filter leaves it out.
  if (signers && !signers.includes(sender)) return undefined;
  const content = fieldsOf(fieldsOf(outer).content);
  const { ipv6, decided_at_ms: decidedMs } = content;
  if (itemHash !== row.item_hash || typeof ipv6 !== 'string' || typeof decidedMs !== 'number')
    throw new AppError('INVALID_CONTENT', `${row.item_hash} is no allocation`);
  return { itemHash, sender, ipv6, decidedMs, content };
}

export interface Allocations {
  readonly allocations: readonly Allocation[];
  /** Why the first of the rows that are none, or that were not signed so, is not among them: it hides no other. */
  readonly refused: AppError | undefined;
  /** Whether there are no more. */
  readonly isWhole: boolean;
}

/**
 * The newest allocations of a machine. Anybody can sign more of them than are read here. Throws where the core node cannot be asked.
 * @param signers whose; anybody's where it is left out
 */
export async function readAllocations(
  coreUrl: string,
  id: string,
  signers?: readonly string[],
): Promise<Allocations> {
  if (signers?.length === 0) return { allocations: [], refused: undefined, isWhole: true };
  const { messages, unreadable } = await callRows(
    coreUrl,
    NETWORK_LISTS_API.listNetworkMessages,
    'messages',
    {
      query: {
        refs: id,
        contentTypes: NETWORK_POST.allocation,
        addresses: signers?.join(','),
        pagination: ALLOCATIONS_READ,
        bodies: 'shared',
      },
    },
  );
  const allocations: Allocation[] = [];
  let refused: AppError | undefined;
  for (const row of messages) {
    try {
      const allocation = await readAllocation(coreUrl, row, signers);
      if (allocation) allocations.push(allocation);
    } catch (error) {
      if (!(error instanceof AppError) || saysNothing(error)) throw error;
      refused ??= error;
    }
  }
  return { allocations, refused, isWhole: messages.length + unreadable.length < ALLOCATIONS_READ };
}
