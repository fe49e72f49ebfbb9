import {
  type RecomputedDerived,
  type RecomputedDigest,
  type RecomputedInstances,
  recomputeDerivedDigests,
  recomputeInstancesDigest,
  recomputeMessagesDigest,
  verdictOnState,
  wordsOnUnproven,
} from '@skerry/client';
import { DERIVED_KINDS } from '@skerry/protocol';
import { parseTypedEvmAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { parseList } from '../options.ts';
import { plainText, renderFields } from '../output/text.ts';
import { readTrust } from './trust.ts';

export interface VerifyOptions {
  readonly max: number;
  readonly schedulers?: string;
}

const REFUSED_SHOWN = 10;
const VERDICTS = {
  same: 'as it says',
  cut: 'as it says, as far as it was compared: there is more than --max',
  unchecked: 'as it says, as far as it was checked: some instances were not, see "instances not proven"',
  different: 'not as it says',
} as const;

function verdictOf({ isSame, isCut, said, computed }: RecomputedDigest): string {
  if (isCut) return `not compared: there are ${said.count}, which is more than --max`;
  return isSame
    ? `${said.count}, as it says: ${said.digest}`
    : `it says ${said.count} (${said.digest}), its list gives ${computed.count} (${computed.digest})`;
}

const refusedFields = ({ refused }: RecomputedInstances | RecomputedDerived): [string, string][] =>
  refused.slice(0, REFUSED_SHOWN).map(({ itemHash, message }) => [plainText(itemHash), plainText(message)]);

/** Whether a core node's digests are those of what it lists, and its instances follow from signed messages. */
export async function verifyNode(
  { coreUrl, output }: Context,
  { max, schedulers: own }: VerifyOptions,
): Promise<number> {
  using progress = output.progress();
  const onProgress = (what: string) => (read: number) => progress.show(`read ${read} ${what}`);
  const onWait = (seconds: number) =>
    progress.show(`waiting ${seconds} s: the core node has been asked as often as it allows`);
  const schedulers: string[] | undefined =
    own === undefined ? undefined : parseList(own).map(parseTypedEvmAddress);
  const trust = await readTrust(coreUrl);
  const believed = schedulers ?? trust.schedulers.value;
  const messages = await recomputeMessagesDigest(
    { coreUrl },
    { max, onWait, onProgress: onProgress('messages') },
  );
  const instances = await recomputeInstancesDigest({ coreUrl }, new Set(believed), {
    max,
    onWait,
    onProgress: onProgress('instances'),
  });
  const publishers = {
    creditPublishers: new Set(trust.credit_publishers.value),
    scoringPublishers: new Set(trust.scoring_publishers.value),
  };
  const derived = await recomputeDerivedDigests({ coreUrl }, publishers, {
    max,
    onWait,
    onProgress: onProgress('messages that state is derived from'),
  });
  const { refused, verified } = instances;
  const verdict = verdictOnState({ messages, instances, derived });
  const text = renderFields([
    ['verdict', VERDICTS[verdict]],
    ['messages', verdictOf(messages)],
    ['instances', verdictOf(instances)],
    ...DERIVED_KINDS.map((kind): [string, string] => [kind, verdictOf(derived.kinds[kind])]),
    ['signed messages checked', verified + derived.verified],
    ['instances that do not follow', refused.length],
    ...refusedFields(instances),
    ['messages that do not verify', derived.refused.length],
    ...refusedFields(derived),
    [
      'signed for others',
      derived.onBehalf > 0 ? `${derived.onBehalf}, which their owners may permit` : undefined,
    ],
    ['instances not proven', wordsOnUnproven(instances)],
    ['schedulers', believed.map(plainText).join(', ') || 'nobody'],
    ['not shown', 'that the lists are those of the network: compare nodes (skerry node diff)'],
  ]);
  const same = verdict === 'same';
  output.result({ url: coreUrl, same, verdict, schedulers: believed, messages, instances, derived }, text);
  return same ? EXIT.ok : EXIT.failed;
}
