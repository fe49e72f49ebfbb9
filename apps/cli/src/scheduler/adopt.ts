import {
  type CoreClient,
  callRows,
  type Patiently,
  readPages,
  readSaidAllocation,
  type SaidAllocation,
} from '@skerry/client';
import {
  type AllocationContent,
  fieldsOf,
  type InstanceView,
  NETWORK_CHANNEL,
  NETWORK_POST,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { type AdoptOptions, openAdopting } from '../adopting/open.ts';
import { untilFields, wordsOnBreak } from '../adopting/until.ts';
import type { Context } from '../context.ts';
import { renderFields, renderTable } from '../output/text.ts';
import { type Adoption, countsBy, decideAdoption } from './adoption.ts';

const INSTANCES_PER_PAGE = 100;
/** The most that a core node gives with what proves them. */
const MESSAGES_PER_PAGE = 100;
const ID_CHARS_SHOWN = 12;
/** Of what differs, for people; `--json` has all. */
const SHOWN_MAX = 50;

type Terms = { readonly from: string; readonly by: string; readonly until: number };

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

/** The placements that count, by instance, and how many of them no text is left of. */
interface Placements {
  readonly said: ReadonlyMap<string, readonly SaidAllocation[]>;
  readonly erased: number;
}

/** How placements are listed, a page at a time. @param more in the query */
function readListed(core: CoreClient, patiently: Patiently, more: object) {
  const filter = {
    ...{ msgTypes: 'POST', contentTypes: NETWORK_POST.allocation, ...more },
    ...{ pagination: MESSAGES_PER_PAGE, bodies: 'shared' as const },
  };
  const list = NETWORK_LISTS_API.listNetworkMessages;
  return readPages((place: object) =>
    patiently(() => callRows(core.url, list, 'messages', { query: { ...filter, ...place } }, core.options)),
  );
}

/**
 * The placements that count of the instances that are there: what is said of others is nobody's business any more. What the old key took back
 * counts as if it had not: a scheduler never does, and a thief would leave nothing to adopt.
 */
async function readPlacements(
  core: CoreClient,
  instances: readonly InstanceView[],
  senders: readonly string[],
  { from, until }: Terms,
  patiently: Patiently,
): Promise<Placements> {
  const said = new Map<string, SaidAllocation[]>(instances.map(({ instance_id: id }) => [id, []]));
  let erased = 0;
  // However many whoever has the key signs afterwards: none of them is verified.
  const isLate = (row: { readonly sender: string; readonly time: number }) =>
    row.sender === from && row.time > until;
  const take = (one: SaidAllocation | undefined) => {
    if (one && senders.includes(one.sender) && countsBy(one, from, until))
      said.get(one.content.instance_id)?.push(one);
  };
  for await (const { messages } of readListed(core, patiently, { addresses: senders.join(',') }))
    for (const row of messages) {
      const isKnown = said.has(String(fieldsOf(fieldsOf(row.content).content).instance_id));
      if (isKnown && !isLate(row)) take(await readSaidAllocation(core.url, row));
    }
  for await (const { messages } of readListed(core, patiently, { addresses: from, msgStatuses: 'forgotten' }))
    for (const row of messages) {
      if (isLate(row)) continue;
      const one = await readSaidAllocation(core.url, row);
      if (one) take(one);
      else erased++;
    }
  return { said, erased };
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

interface Outcome {
  readonly dry_run: boolean;
  readonly until: number;
  readonly erased: number;
  readonly schedulers: readonly string[];
}

function textOf({ dry_run: isDry, until, erased, schedulers }: Outcome, adoption: Adoption): string {
  const { toSign, adoptedBefore, ofOthers, unplaced, differences } = adoption;
  const counts = renderFields([
    ...untilFields(until),
    [isDry ? 'to sign' : 'signed', String(toSign.length)],
    ['signed before', String(adoptedBefore)],
    ["others' word", String(ofOthers)],
    ['not placed by then', String(unplaced.length)],
    ['elsewhere now', String(differences.length)],
    ...(erased > 0 ? [['taken back, text erased', String(erased)] as const] : []),
  ]);
  const table = renderTable(
    ['INSTANCE', 'ADOPTED ON', 'NOW ON'],
    differences
      .slice(0, SHOWN_MAX)
      .map((one) => [shortOf(one.instance_id), shortOf(one.node_id), shortOf(one.node_id_now)]),
  );
  // Without the old key's placements a list without the old key would move every instance.
  const isFound = toSign.length + adoptedBefore > 0;
  const next = !isFound
    ? 'Nothing that the old key had placed by then is there: check the address, the core node and --until.'
    : isDry
      ? 'Nothing was signed (--dry-run).'
      : `On every core node, set SKERRY_CORE_SCHEDULERS=${schedulers.join(',')} and restart it.`;
  return [counts, table, next].filter((part) => part !== '').join('\n\n');
}

/**
 * Has a new scheduler's key sign the placements of an old one, so that they stay where core nodes trust the new key in its place. Can be called
 * again: what the new key has signed it does not sign once more.
 *
 * @throws AppError INVALID_PARAMETERS, INVALID_ADDRESS, INVALID_CONFIG, and what the core node refuses
 */
export async function adoptPlacements(context: Context, old: string, options: AdoptOptions): Promise<void> {
  const { from, by, until, core, patiently } = await openAdopting(context, old, options);
  const { trust } = await core.getInfo();
  const others = trust.schedulers.value.filter((address) => address !== from && address !== by);
  const terms = { from, by, until };
  using progress = context.output.progress();
  progress.show('reading the instances and their placements');
  const { instances, unreadable } = await readInstances(core, patiently);
  const { said, erased } = await readPlacements(core, instances, [from, by, ...others], terms, patiently);
  const adoption = decideAdoption(instances, said, terms);
  const { toSign } = adoption;
  let sent = 0;
  const onSent = (count: number) => {
    sent = count;
    progress.show(`signed ${count} of ${toSign.length} placements`);
  };
  try {
    if (!options.dryRun) await send(core, toSign, patiently, onSent);
  } catch (error) {
    context.output.note(wordsOnBreak(sent, toSign.length));
    throw error;
  }
  const trusted = [...others, by].toSorted();
  const facts = {
    ...{ dry_run: options.dryRun === true, from, by, until, instances: instances.length },
    signed: toSign,
    signed_before: adoption.adoptedBefore,
    of_others: adoption.ofOthers,
    unplaced: adoption.unplaced,
    differences: adoption.differences,
    ...{ erased, unreadable },
    schedulers: trusted,
  };
  context.output.result(facts, textOf(facts, adoption));
}
