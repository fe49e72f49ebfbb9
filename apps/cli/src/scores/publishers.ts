import { AppError, parseTypedEvmAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { readTrust } from '../nodes/trust.ts';
import { parseList } from '../options.ts';

/** Those that were named, comma-separated, else those whose measurements the core node trusts. */
export async function publishersOf(
  { coreUrl }: Pick<Context, 'coreUrl'>,
  given: string | undefined,
): Promise<string[]> {
  const named = given === undefined ? undefined : parseList(given);
  const publishers = named ?? (await readTrust(coreUrl)).scoring_publishers.value;
  if (publishers.length === 0)
    throw new AppError(
      'INVALID_PARAMETERS',
      named
        ? '--publisher is empty'
        : `${coreUrl} trusts nobody's measurements; choose whose to use with --publisher`,
    );
  return publishers.map((one) => parseTypedEvmAddress(one) as string);
}
