import {
  AppError,
  hexToBytes,
  loadVrfEngine,
  parseVrfClaim,
  parseVrfRequest,
  VRF_SUITES,
  type VrfClaimBody,
  type VrfVerdictView,
  verifyVrfToken,
  viewOfVrfVerdict,
} from '@skerry/protocol';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { readContent } from '../messages/content.ts';
import { plainText, renderFields } from '../output/text.ts';

export interface VrfGenerateOptions {
  readonly min?: number;
  readonly max?: number;
  readonly count?: number;
}

export interface VrfVerifyOptions {
  readonly answer: string;
  readonly publicKey?: string;
}

/** What an answer repeats of the request. */
const ASKED = ['seed', 'min', 'max', 'count'] as const;

/** Prints only what holds: the node's answer is checked before it is believed. */
export async function generateRandom(
  context: Context,
  seed: string,
  options: VrfGenerateOptions,
): Promise<void> {
  const request = parseVrfRequest({ seed, ...options });
  const answer = await context.reader.generateRandom({ ...request });
  const { valid } = verifyVrfToken(answer, await loadVrfEngine());
  const asked = ASKED.every((name) => answer[name] === request[name]);
  if (!valid || !asked)
    throw new AppError('UPSTREAM_UNAVAILABLE', "the proof in the core node's answer is false");
  context.output.result(
    answer,
    renderFields([
      [answer.count === 1 ? 'value' : 'values', answer.values.join(' ')],
      ['seed', plainText(answer.seed)],
      ['public_key', answer.public_key],
      ['proof', answer.proof],
    ]),
  );
}

function expectKey(given: string): string {
  const bytes = hexToBytes(given);
  const sizes = [32, 33];
  if (bytes === undefined || !sizes.includes(bytes.length))
    throw new AppError(
      'INVALID_PARAMETERS',
      `--public-key must be a key of ${VRF_SUITES.edwards25519Tai.name}: 64 hexadecimal digits`,
    );
  return given.replace(/^0x/i, '').toLowerCase();
}

async function judge(
  context: Context,
  claim: VrfClaimBody,
  given: string | undefined,
): Promise<VrfVerdictView> {
  const key = given === undefined ? undefined : expectKey(given);
  const verdict = viewOfVrfVerdict(verifyVrfToken(claim, await loadVrfEngine()));
  if (!verdict.valid) return verdict;
  const refuse = (message: string): VrfVerdictView => {
    const { values: _, ...rest } = verdict;
    return { ...rest, valid: false, reason: { code: 'VRF_KEY_UNKNOWN', message } };
  };
  if (key !== undefined)
    return verdict.public_key === key
      ? verdict
      : refuse(`the proof is valid, but for the key ${verdict.public_key}`);
  // The proof was checked here; the node is only asked whose key it is.
  const { valid, reason } = await context.reader.verifyRandom(claim);
  return valid ? verdict : refuse(reason?.message ?? `${context.coreUrl} does not know the key`);
}

/** @returns the exit code: 1 where the values do not hold */
export async function verifyRandom(context: Context, options: VrfVerifyOptions): Promise<number> {
  const claim = parseVrfClaim(
    await readContent({ option: '--answer', given: options.answer }, context.stdin),
  );
  const verdict = await judge(context, claim, options.publicKey);
  const { valid, reason, min, max, count, values, public_key: publicKey } = verdict;
  const range = min === undefined ? '' : `${count} from ${min} to ${max}`;
  context.output.result(
    verdict,
    renderFields([
      ['valid', valid ? 'yes' : 'no'],
      ...(reason ? ([['reason', `${plainText(reason.message)} (${plainText(reason.code)})`]] as const) : []),
      ...(values ? ([['values', values.join(' ')]] as const) : []),
      ...(range ? ([['asked', range]] as const) : []),
      ...(publicKey ? ([['public_key', publicKey]] as const) : []),
    ]),
  );
  return valid ? EXIT.ok : EXIT.failed;
}
