import { normaliseAddress } from '../content/on-behalf.ts';
import { instanceNeeds, MIB_BYTES, programNeeds, type ResourceNeeds, storageNeeds } from '../credit/costs.ts';
import { AppError } from '../errors.ts';
import { NETWORK_PARSERS } from './content.ts';
import { convertProgram, sizeOfInstance } from './convert.ts';

/** Types of messages of the network form that cost something. */
export const PRICED_TYPES = ['INSTANCE', 'PROGRAM', 'STORE'] as const;
export type PricedType = (typeof PRICED_TYPES)[number];

/** What a message that was not sent would be charged for. */
export interface Estimate {
  readonly owner: string;
  readonly needs: ResourceNeeds;
}

/** Where a client says how large a file will be that it has not sent; contents that are sent have no such field. */
const ESTIMATE = 'estimated_size_mib';

/** Beyond it bytes are not counted exactly. */
const ESTIMATE_MAX = Math.floor(Number.MAX_SAFE_INTEGER / MIB_BYTES);

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

const withoutEstimates = (content: unknown): unknown =>
  JSON.parse(
    JSON.stringify(content ?? null, (name, value: unknown) => (name === ESTIMATE ? undefined : value)),
  );

/** The size in bytes that the client says, if it says one. Throws INVALID_CONTENT. */
function readEstimate(content: unknown): number | undefined {
  const said = memberOf(content, ESTIMATE) ?? undefined;
  if (said === undefined) return undefined;
  if (typeof said === 'number' && said >= 0 && said <= ESTIMATE_MAX) return Math.ceil(said) * MIB_BYTES;
  throw new AppError('INVALID_CONTENT', `content.${ESTIMATE} must be a number from 0 to ${ESTIMATE_MAX}`);
}

/** A file is charged by its size: the one that the node knows, or else the one that the client says. */
async function readFileNeeds(
  content: unknown,
  findSize: (fileHash: string) => Promise<number | undefined>,
): Promise<Estimate> {
  const { address, item_hash, size } = NETWORK_PARSERS.STORE(withoutEstimates(content));
  const saidBytes = readEstimate(content);
  const bytes = (await findSize(item_hash)) ?? saidBytes ?? size;
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes))
    throw new AppError(
      'FILE_NOT_FOUND',
      `there is no file ${item_hash} here; say its size in content.${ESTIMATE}`,
    );
  return { owner: normaliseAddress(address), needs: storageNeeds(bytes) };
}

/**
 * Reads a content as it would be read if it were sent, but for an instance's key and image: who asks for a price may not
 * have chosen them yet.
 *
 * @param findSize bytes of a file that the node has
 * @throws AppError INVALID_CONTENT, UNKNOWN_FIELD, FILE_NOT_FOUND
 */
export async function estimateNeeds(
  type: PricedType,
  content: unknown,
  findSize: (fileHash: string) => Promise<number | undefined>,
): Promise<Estimate> {
  if (type === 'STORE') return readFileNeeds(content, findSize);
  const plain = withoutEstimates(content);
  if (type === 'INSTANCE') {
    const instance = NETWORK_PARSERS.INSTANCE(plain);
    return {
      owner: normaliseAddress(instance.address),
      needs: instanceNeeds(sizeOfInstance(instance)),
    };
  }
  const program = NETWORK_PARSERS.PROGRAM(plain);
  return {
    owner: normaliseAddress(program.address),
    needs: programNeeds(convertProgram(program, '')),
  };
}
