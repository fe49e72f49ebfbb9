import { parseAbi } from '@skerry/indexer/abi';
import { AppError, NETWORK_POST, parseTypedEvmAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { readJson } from '../messages/content.ts';
import { verdictFields } from '../messages/verdict.ts';
import { plainText } from '../output/text.ts';
import { waitForRequest } from './request-wait.ts';
import { renderNetwork, renderNetworks } from './shown.ts';

export interface IndexerAddOptions {
  readonly abi: string;
  readonly startBlock: string;
  readonly transactions?: boolean;
}

export async function showIndexerStatus({ reader, output }: Context, network?: string): Promise<void> {
  if (network !== undefined) {
    const one = await reader.getNetwork(network);
    output.result(one, renderNetwork(one, output.table));
    return;
  }
  const networks = await reader.listNetworks();
  output.result({ networks }, renderNetworks(networks, output.table));
}

/**
 * Sends a POST `net-index`, and waits until the core node has acted on it. Throws NETWORK_NOT_FOUND, TIMED_OUT, and why the node refused
 * it: INVALID_ABI, WATCH_LIMIT_REACHED, WATCH_NOT_FOUND.
 */
async function postWish(
  context: Context,
  wish: { readonly network: string } & Record<string, unknown>,
): Promise<void> {
  await context.reader.getNetwork(wish.network);
  const core = await context.openWriter();
  const answer = await core.postMessage({
    type: 'POST',
    content: { type: NETWORK_POST.index, content: wish },
  });
  using progress = context.output.progress();
  progress.show('waiting for the core node to act on the request');
  await waitForRequest(context.output, core, { address: core.signer.address, hash: answer.item_hash });
  context.output.result({ ...answer, ...verdictFields(answer) }, answer.item_hash);
}

/** A core node that reads no network at all acts on no request either. Throws NETWORK_NOT_FOUND. */
async function checkIsRead({ reader }: Context, network: string): Promise<void> {
  if ((await reader.getNetwork(network)).state !== 'not_read') return;
  const read = (await reader.listNetworks()).filter(({ state }) => state !== 'not_read');
  const networks = read.map((one) => plainText(one.network));
  throw new AppError(
    'NETWORK_NOT_FOUND',
    `the core node does not read ${JSON.stringify(network)} any more: it reads ${networks.join(', ') || 'none'}`,
    { details: { networks } },
  );
}

export async function addToIndexer(
  context: Context,
  network: string,
  contract: string,
  options: IndexerAddOptions,
): Promise<void> {
  const startBlock = Number(options.startBlock);
  if (!/^\d+$/.test(options.startBlock) || !Number.isSafeInteger(startBlock))
    throw new AppError('INVALID_PARAMETERS', 'the start block must be a whole number from 0');
  const abi = await readJson({ option: '--abi', given: options.abi }, context.stdin);
  parseAbi(abi);
  await checkIsRead(context, network);
  await postWish(context, {
    action: 'add',
    network,
    contract: parseTypedEvmAddress(contract),
    abi,
    start_block: startBlock,
    transactions: options.transactions === true,
  });
}

export async function removeFromIndexer(context: Context, network: string, contract: string): Promise<void> {
  await postWish(context, { action: 'remove', network, contract: parseTypedEvmAddress(contract) });
}
