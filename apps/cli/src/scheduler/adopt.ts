import {
  type CoreClient,
  callRows,
  createPatience,
  createSigner,
  type Patiently,
  readPages,
  verifyListed,
} from '@skerry/client';
import { loadKeyFile } from '@skerry/kit/files';
import {
  type AllocationContent,
  AppError,
  fieldsOf,
  type InstanceView,
  NETWORK_CHANNEL,
  NETWORK_POST,
  parseAllocationContent,
  parseEvmAddress,
  parsePostContent,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { readAddress } from '../address.ts';
import type { Context } from '../context.ts';
import { renderFields, renderTable } from '../output/text.ts';
import { parseMoment } from '../scores/compute.ts';
import { type Adoption, countsBy, decideAdoption, type SaidAllocation } from './adoption.ts';

export interface AdoptOptions {
  /** Unix seconds, or a date. */
  readonly until: string;
  readonly keyFile: string;
  readonly dryRun?: boolean;
}

const INSTANCES_PER_PAGE = 100;
/** The most that a core node gives with what proves them. */
const MESSAGES_PER_PAGE = 100;
const ID_CHARS_SHOWN = 12;
/** Of what differs, for people; `--json` has all. */
const SHOWN_MAX = 50;

/** What a core node gives that its sender did not sign so, or that cannot be read, counts for nothing. */
const NOT_SIGNED: ReadonlySet<string> = new Set(['invalid', 'unauthorized', 'missing']);

type Terms = { readonly from: string; readonly by: string; readonly until: number };

/** A listed message as its sender signed it; undefined where it places nothing. */
async function readSaid(
  core: CoreClient,
  row: Parameters<typeof verifyListed>[1],
): Promise<SaidAllocation | undefined> {
  try {
    const { itemHash, sender, time, notedMs, content } = await verifyListed({ coreUrl: core.url }, row);
    const post = parsePostContent(content);
    if (post.type !== NETWORK_POST.allocation) return undefined;
    return { itemHash, sender, time, notedMs, content: parseAllocationContent(post.content) };
  } catch (error) {
    if (error instanceof AppError && NOT_SIGNED.has(error.kind)) return undefined;
    throw error;
  }
}

/** All instances, of however many pages a core node gives a client only so many in a minute. */
async function readInstances(core: CoreClient, patiently: Patiently) {
  const instances = new Map<string, InstanceView>();
  let unreadable = 0;
  let cursor: string | undefined;
  do {
    const query = { cursor, limit: INSTANCES_PER_PAGE };
    const page = await patiently(() => core.listInstances(query));
    for (const instance of page.instances) instances.set(instance.instance_id, instance);
    unreadable += page.unreadable.length;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return { instances: [...instances.values()], unreadable };
}

/** The placements that count, by instance: of those that are there, since what is said of others is nobody's business any more. */
async function readPlacements(
  core: CoreClient,
  instances: readonly InstanceView[],
  senders: readonly string[],
  { from, until }: Terms,
  patiently: Patiently,
): Promise<Map<string, SaidAllocation[]>> {
  const said = new Map<string, SaidAllocation[]>(instances.map(({ instance_id: id }) => [id, []]));
  const filter = {
    ...{ msgTypes: 'POST', contentTypes: NETWORK_POST.allocation, addresses: senders.join(',') },
    ...{ pagination: MESSAGES_PER_PAGE, bodies: 'shared' as const },
  };
  const list = NETWORK_LISTS_API.listNetworkMessages;
  const read = (place: object) =>
    patiently(() => callRows(core.url, list, 'messages', { query: { ...filter, ...place } }, core.options));
  for await (const { messages } of readPages(read))
    for (const row of messages) {
      // However many whoever has the key signs afterwards: none of them is verified.
      if (row.sender === from && row.time > until) continue;
      const known = said.get(String(fieldsOf(fieldsOf(row.content).content).instance_id));
      const one = known && (await readSaid(core, row));
      if (one && senders.includes(one.sender) && countsBy(one, from, until))
        said.get(one.content.instance_id)?.push(one);
    }
  return said;
}

/** One after another: what breaks off has sent the first of them. @param onSent told how many are */
async function send(
  core: CoreClient,
  placements: readonly AllocationContent[],
  patiently: Patiently,
  onSent: (count: number) => void,
): Promise<void> {
  for (const [index, content] of placements.entries()) {
    const post = { type: NETWORK_POST.allocation, content };
    const draft = { type: 'POST', channel: NETWORK_CHANNEL.scheduling, content: post };
    await patiently(() => core.postMessage(draft));
    onSent(index + 1);
  }
}

const shortOf = (id: string | null) => id?.slice(0, ID_CHARS_SHOWN) ?? 'none';

function textOf(isDry: boolean, adoption: Adoption, trusted: readonly string[]): string {
  const { toSign, adoptedBefore, ofOthers, unplaced, differences } = adoption;
  const counts = renderFields([
    [isDry ? 'to sign' : 'signed', String(toSign.length)],
    ['signed before', String(adoptedBefore)],
    ["others' word", String(ofOthers)],
    ['not placed by then', String(unplaced.length)],
    ['elsewhere now', String(differences.length)],
  ]);
  const table = renderTable(
    ['INSTANCE', 'ADOPTED ON', 'NOW ON'],
    differences
      .slice(0, SHOWN_MAX)
      .map((one) => [shortOf(one.instance_id), shortOf(one.node_id), shortOf(one.node_id_now)]),
  );
  const next = isDry
    ? 'Nothing was signed (--dry-run).'
    : `On every core node, set SKERRY_CORE_SCHEDULERS=${trusted.join(',')} and restart it.`;
  return [counts, table, next].filter((part) => part !== '').join('\n\n');
}

/** Unix seconds. Of a moment that is still to come everything would count, also what a thief has signed. */
function parseUntil(text: string): number {
  const until = parseMoment(text);
  if (until * 1_000 <= Date.now()) return until;
  throw new AppError('INVALID_PARAMETERS', `--until ${text} is still to come; name a moment before the leak`);
}

/**
 * Has a new scheduler's key sign the placements of an old one, so that they stay where core nodes trust the new key in its place. Can be called
 * again: what the new key has signed it does not sign once more.
 *
 * @throws AppError INVALID_PARAMETERS, INVALID_ADDRESS, INVALID_CONFIG, and what the core node refuses
 */
export async function adoptPlacements(context: Context, old: string, options: AdoptOptions): Promise<void> {
  const from = parseEvmAddress(await readAddress(old));
  const until = parseUntil(options.until);
  const core = await context.openWriter(createSigner(await loadKeyFile(options.keyFile)));
  const by = core.signer.address;
  if (by === from)
    throw new AppError(
      'INVALID_PARAMETERS',
      `${options.keyFile} is the key of ${from} itself; name the new one`,
    );
  const { trust } = await core.getInfo();
  const others = trust.schedulers.value.filter((address) => address !== from && address !== by);
  const terms = { from, by, until };
  const onWait = (seconds: number) =>
    context.output.note(`the core node was asked too often; waiting ${seconds} s`);
  // Of each of them its own: what a minute has room for says nothing of how many there are.
  const patiently: Patiently = (ask) => createPatience({ onWait })(ask);
  using progress = context.output.progress();
  progress.show('reading the instances and their placements');
  const { instances, unreadable } = await readInstances(core, patiently);
  const said = await readPlacements(core, instances, [from, by, ...others], terms, patiently);
  const adoption = decideAdoption(instances, said, terms);
  const { toSign } = adoption;
  const onSent = (count: number) => progress.show(`signed ${count} of ${toSign.length} placements`);
  if (!options.dryRun) await send(core, toSign, patiently, onSent);
  const trusted = [...others, by].toSorted();
  const facts = {
    ...{ dry_run: options.dryRun === true, from, by, until, instances: instances.length },
    signed: toSign,
    signed_before: adoption.adoptedBefore,
    of_others: adoption.ofOthers,
    unplaced: adoption.unplaced,
    differences: adoption.differences,
    unreadable,
    schedulers: trusted,
  };
  context.output.result(facts, textOf(facts.dry_run, adoption, trusted));
}
