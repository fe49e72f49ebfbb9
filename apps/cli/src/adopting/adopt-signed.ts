import { type CoreClient, callRows, type Patiently, readPages, verifyDated } from '@skerry/client';
import { AppError, effectiveTime, ownerOf, type VerifiedMessage } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { Context } from '../context.ts';
import { renderFields } from '../output/text.ts';
import { type CopyDraft, draftOf, sendCopy, signCopy } from './copies.ts';
import { ADOPTED, type AdoptedKind, type AdoptedService } from './kinds.ts';
import { type AdoptOptions, openAdopting } from './open.ts';
import { untilFields, wordsOnBreak } from './until.ts';

/** The most that a core node gives with what proves them. */
const PER_PAGE = 100;
const NOT_SIGNED: ReadonlySet<string> = new Set(['invalid', 'unauthorized', 'missing']);
/** Before core nodes trust its key a stop is rejected, and where a thief took back what its instance was paid with, it waits for that. */
const STATUSES = ['processed,pending,rejected', 'forgotten'] as const;

interface Tally {
  signed: number;
  signedBefore: number;
  /** Not read by the moment's date, or seen by a core node only later. */
  tooLate: number;
  /** Without a text that its sender signed, or that tells since when it is there: erased, for the most part. */
  unreadable: number;
}

interface Reading {
  readonly core: CoreClient;
  readonly patiently: Patiently;
  readonly kind: AdoptedKind;
}

type Terms = { readonly from: string; readonly until: number; readonly isDry: boolean };
type Status = (typeof STATUSES)[number];

/** Lists have no filter by the key of an aggregate: those of others are read, and left alone. */
const queriesOf = ({ posts, stops }: AdoptedKind): Readonly<Record<string, string>>[] => [
  { msgTypes: 'POST', contentTypes: posts.join(',') },
  { msgTypes: 'AGGREGATE' },
  ...(stops ? [{ msgTypes: 'INSTANCE_CONTROL' }] : []),
];

/** @param onUnreadable told how many rows are in no form that can be read */
async function* listSigned(
  { core, patiently, kind }: Reading,
  address: string,
  msgStatuses: Status,
  onUnreadable: (count: number) => void = () => {},
) {
  for (const query of queriesOf(kind)) {
    const filter = {
      ...{ ...query, msgStatuses, addresses: address },
      ...{ pagination: PER_PAGE, bodies: 'shared' as const },
    };
    const list = NETWORK_LISTS_API.listNetworkMessages;
    const read = (place: object) =>
      patiently(() => callRows(core.url, list, 'messages', { query: { ...filter, ...place } }, core.options));
    for await (const { messages, unreadable } of readPages(read)) {
      onUnreadable(unreadable.length);
      yield* messages;
    }
  }
}

type Row = Parameters<typeof verifyDated>[1] & { readonly time: number };

/** Undefined of what its sender did not sign so, and where nothing tells since when it is there. */
async function verify({ core, patiently }: Reading, row: Row): Promise<VerifiedMessage | undefined> {
  try {
    return await patiently(() => verifyDated({ coreUrl: core.url }, row));
  } catch (error) {
    if (error instanceof AppError && NOT_SIGNED.has(error.kind)) return undefined;
    throw error;
  }
}

/** Whether what it stopped was forgotten, and the stop with it: nobody took that back. */
async function isGone({ core, patiently }: Reading, draft: CopyDraft): Promise<boolean> {
  if (draft.form !== 'envelope') return false;
  try {
    return (await patiently(() => core.getMessage(draft.instanceId))).status === 'forgotten';
  } catch (error) {
    if (error instanceof AppError && error.kind === 'missing') return false;
    throw error;
  }
}

/** Signs one after another, a page in memory at a time: a monitor has years of them. What breaks off has sent the first of them. */
async function adoptAll(
  reading: Reading,
  { from, until, isDry }: Terms,
  tally: Tally,
  onSigned: () => void,
): Promise<void> {
  const { core, kind, patiently } = reading;
  const known = new Set<string>();
  for await (const { item_hash: hash } of listSigned(reading, core.signer.address, STATUSES[0]))
    known.add(hash);
  const take = async (row: Row, status: Status): Promise<keyof Tally | undefined> => {
    if (row.time > until) return 'tooLate';
    const said = await verify(reading, row);
    if (said?.sender !== from) return 'unreadable';
    // What it said for somebody else is theirs.
    if (ownerOf(from, said.content ?? {}) !== from) return undefined;
    const draft = draftOf(said, kind);
    if (!draft) return undefined;
    // Its date is its sender's word: what a core node saw only later may be the thief's.
    if (effectiveTime(said) > until) return 'tooLate';
    const copy = signCopy(draft, core.signer);
    if (known.has(copy.itemHash)) return 'signedBefore';
    if (status === 'forgotten' && (await isGone(reading, draft))) return undefined;
    if (!isDry) await sendCopy(core, copy, patiently);
    return 'signed';
  };
  const onUnreadable = (count: number) => {
    tally.unreadable += count;
  };
  for (const status of STATUSES)
    for await (const row of listSigned(reading, from, status, onUnreadable)) {
      const what = await take(row, status);
      if (what === undefined) continue;
      tally[what]++;
      if (what === 'signed') onSigned();
    }
}

/** A list without the old key is only right once something is adopted. Throws MESSAGE_NOT_FOUND where there is nothing. */
function checkFound(
  { signed, signedBefore, tooLate, unreadable }: Tally,
  kind: AdoptedKind,
  from: string,
  coreUrl: string,
) {
  if (signed + signedBefore > 0) return;
  const why =
    tooLate + unreadable === 0
      ? `by ${coreUrl}, ${from} never signed what ${kind.name} signs: check the address and the core node`
      : `nothing that ${from} signed is both there by --until and readable (${tooLate} later, ${unreadable} unreadable): check the moment`;
  throw new AppError('MESSAGE_NOT_FOUND', `nothing was adopted: ${why}`);
}

function textOf(tally: Tally, { until, isDry }: Terms, setting: string, trusted: readonly string[]): string {
  const counts = renderFields([
    ...untilFields(until),
    [isDry ? 'to sign' : 'signed', String(tally.signed)],
    ['signed before', String(tally.signedBefore)],
    ['later than that', String(tally.tooLate)],
    ['unreadable', String(tally.unreadable)],
  ]);
  const next = isDry
    ? 'Nothing was signed (--dry-run).'
    : `On every core node, set ${setting}=${trusted.join(',')} and restart it.`;
  return `${counts}\n\n${next}`;
}

/**
 * Has the key of a new service sign what an old one had signed by a moment, with its dates, so that it counts on where core nodes trust the new key
 * in its place. Can be called again: what the new key has signed is the same message.
 *
 * @throws AppError INVALID_PARAMETERS, INVALID_ADDRESS, INVALID_CONFIG, MESSAGE_NOT_FOUND where there is nothing to adopt, and what the core
 *   node refuses
 */
export async function adoptSigned(
  context: Context,
  service: AdoptedService,
  old: string,
  options: AdoptOptions,
): Promise<void> {
  const kind = ADOPTED[service];
  const { from, by, until, core, patiently } = await openAdopting(context, old, options);
  const terms = { from, until, isDry: options.dryRun === true };
  const tally: Tally = { signed: 0, signedBefore: 0, tooLate: 0, unreadable: 0 };
  using progress = context.output.progress();
  progress.show('reading what the old key has signed');
  const onSigned = () => progress.show(`${terms.isDry ? 'to sign' : 'signed'}: ${tally.signed} messages`);
  try {
    await adoptAll({ core, patiently, kind }, terms, tally, onSigned);
  } catch (error) {
    if (!terms.isDry && tally.signed > 0) context.output.note(wordsOnBreak(tally.signed));
    throw error;
  }
  checkFound(tally, kind, from, core.url);
  const { trust } = await core.getInfo();
  const others = trust[kind.trust].value.filter((address) => address !== from && address !== by);
  const publishers = [...others, by].toSorted();
  const { signed, signedBefore: signed_before, tooLate: too_late, unreadable } = tally;
  const facts = {
    dry_run: terms.isDry,
    from,
    by,
    until,
    signed,
    signed_before,
    too_late,
    unreadable,
    publishers,
  };
  context.output.result(facts, textOf(tally, terms, kind.setting, publishers));
}
