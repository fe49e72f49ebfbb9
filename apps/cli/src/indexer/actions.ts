import { AppError, NETWORK_POST, parseEvmAddress } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { readJson } from '../messages/content.ts';
import { plainText, renderFields, renderTable, renderTime } from '../output/text.ts';

export interface IndexerAddOptions {
  readonly abi: string;
  readonly startBlock: string;
  readonly transactions?: boolean;
}

interface NetworkStatus {
  readonly network: string;
  readonly head: number | null;
  readonly finalized: number | null;
  readonly indexed: number | null;
  readonly lag: number | null;
  readonly state: string;
  readonly halt: { readonly code: string; readonly message: string } | null;
  readonly progress_at: number;
  readonly calls: number;
}

interface ContractStatus {
  readonly contract: string;
  readonly kind: string;
  readonly from_block: number;
  readonly to_block: number | null;
  readonly live: boolean;
}

const shown = (value: number | null) => (value === null ? '-' : String(value));

export async function showIndexerStatus({ reader, output }: Context, network?: string): Promise<void> {
  const answer = await reader.getIndexerStatus(network);
  if (network !== undefined) {
    const one = answer as unknown as NetworkStatus & { contracts: ContractStatus[] };
    const fields = renderFields([
      ['network', plainText(one.network)],
      ['state', plainText(one.halt ? `${one.state}: ${one.halt.message}` : one.state)],
      ['head', shown(one.head)],
      ['finalized', shown(one.finalized)],
      ['indexed', shown(one.indexed)],
      ['lag', shown(one.lag)],
      ['progress', renderTime(one.progress_at)],
      ['rpc calls', one.calls],
    ]);
    const rows = one.contracts.map((contract) => [
      plainText(contract.contract),
      plainText(contract.kind),
      String(contract.from_block),
      contract.live ? 'live' : shown(contract.to_block),
    ]);
    output.result(answer, `${fields}\n\n${renderTable(['CONTRACT', 'KIND', 'FROM', 'TO'], rows)}`);
    return;
  }
  const { networks } = answer as unknown as { networks: NetworkStatus[] };
  const rows = networks.map((one) => [
    plainText(one.network),
    plainText(one.state),
    shown(one.head),
    shown(one.indexed),
    shown(one.lag),
  ]);
  output.result(answer, renderTable(['NETWORK', 'STATE', 'HEAD', 'INDEXED', 'LAG'], rows));
}

/** Sends a POST `net-index`; the core node acts on it when it reads it, within a second or so. */
async function postWish(context: Context, wish: Record<string, unknown>): Promise<void> {
  const core = await context.openWriter();
  const answer = await core.postMessage({
    type: 'POST',
    content: { type: NETWORK_POST.index, content: wish },
  });
  context.output.result(answer, answer.item_hash);
}

export async function addToIndexer(
  context: Context,
  network: string,
  contract: string,
  options: IndexerAddOptions,
): Promise<void> {
  const startBlock = Number(options.startBlock);
  if (!/^\d+$/.test(options.startBlock) || !Number.isSafeInteger(startBlock))
    throw new AppError('INVALID_PARAMETERS', 'the start block is a whole number from 0');
  const abi = await readJson(options.abi, context.stdin);
  if (!Array.isArray(abi)) throw new AppError('INVALID_ABI', 'an ABI is a list');
  await postWish(context, {
    action: 'add',
    network,
    contract: parseEvmAddress(contract),
    abi,
    start_block: startBlock,
    transactions: options.transactions === true,
  });
}

export async function removeFromIndexer(context: Context, network: string, contract: string): Promise<void> {
  await postWish(context, { action: 'remove', network, contract: parseEvmAddress(contract) });
}
