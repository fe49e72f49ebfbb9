import { type CoreClient, createPatience, createSigner, type Patiently } from '@skerry/client';
import { loadKeyFile } from '@skerry/kit/files';
import { AppError, parseEvmAddress } from '@skerry/protocol';
import { readAddress } from '../address.ts';
import type { Context } from '../context.ts';
import { parseUntil } from './until.ts';

export interface AdoptOptions {
  /** Unix seconds, or a date. */
  readonly until: string;
  /** Of the new key. */
  readonly keyFile: string;
  readonly dryRun?: boolean;
}

/** Who takes over from whom, and what counts. */
interface Adopting {
  /** The old key's address. */
  readonly from: string;
  /** The new one's. */
  readonly by: string;
  /** Unix seconds. */
  readonly until: number;
  /** Signs with the new key. */
  readonly core: CoreClient;
  /** Of each call its own: what a minute has room for says nothing of how many there are. */
  readonly patiently: Patiently;
}

/** @throws AppError INVALID_PARAMETERS, INVALID_ADDRESS, INVALID_CONFIG */
export async function openAdopting(context: Context, old: string, options: AdoptOptions): Promise<Adopting> {
  const from = parseEvmAddress(await readAddress(old));
  const until = parseUntil(options.until);
  const core = await context.openWriter(createSigner(await loadKeyFile(options.keyFile)));
  const by = core.signer.address;
  if (by === from)
    throw new AppError(
      'INVALID_PARAMETERS',
      `${options.keyFile} is the key of ${from} itself; name the new one`,
    );
  const onWait = (seconds: number) =>
    context.output.note(`the core node was asked too often; waiting ${seconds} s`);
  return { from, by, until, core, patiently: (ask) => createPatience({ onWait })(ask) };
}
