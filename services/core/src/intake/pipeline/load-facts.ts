import {
  type Acting,
  AUTHORIZATIONS,
  aggregateKeyOf,
  effectiveTime,
  parseAuthorizations,
  SECURITY_KEY,
} from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { readSecurity } from '../../state/addresses/authorizations.ts';
import { loadAffordance, loadStoppable } from '../../state/credits/afford.ts';
import { messagesOf } from '../../store/messages-by-key.ts';
import type { Schema } from '../../store/schema.ts';
import { type Accepted, type Facts, isJudged, type MessageHead, type Verdict } from '../accepted.ts';
import { aggregateEffect } from '../effects/aggregates.ts';
import { resourceEffect } from '../effects/credits.ts';
import { fileEffect } from '../effects/files.ts';
import { headOf } from './decide.ts';
import { IS_READ, type Kept } from './load-known.ts';

/** The facts of a batch: read once, then kept up to date as the batch's messages are decided one after another. */
export interface BatchFacts extends Facts {
  note(accepted: Accepted, verdict: Verdict): void;
}

const distinct = (values: readonly string[]) => [...new Set(values)];

/** Heads of the messages that are spoken of. */
async function loadHeads(db: Kysely<Schema>, hashes: string[]): Promise<Map<string, MessageHead>> {
  if (hashes.length === 0) return new Map();
  const { rows } = await sql<{
    item_hash: string;
    type: string;
    content_type: string | null;
    channel: string | null;
    subject: string | null;
    chain: string;
    sender: string;
    owner: string;
    is_read: boolean;
    status: MessageHead['status'];
  }>`select m.item_hash, type, content_type, channel, subject, chain, sender, owner, status,
       ${IS_READ} or form <> 'network' or status = 'forgotten' or erased is not null as is_read
     from ${messagesOf(hashes)}`.execute(db);
  return new Map(
    rows.map((row) => [
      row.item_hash,
      {
        itemHash: row.item_hash,
        type: row.type,
        contentType: row.content_type,
        channel: row.channel,
        subject: row.subject,
        chain: row.chain,
        sender: row.sender,
        owner: row.owner,
        isRead: row.is_read,
        status: row.status,
      },
    ]),
  );
}

async function loadFiles(db: Kysely<Schema>, hashes: string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const rows = await db.selectFrom('files').select('hash').where('hash', 'in', hashes).execute();
  return new Set(rows.map((row) => row.hash));
}

/** A message of the batch, for those that come after it. */
function headAs(accepted: Accepted, verdict: Verdict): MessageHead {
  const head = headOf(accepted);
  const { status } = verdict;
  if (status === 'processed') return head;
  // What was erased was read before it was forgotten.
  return { ...head, status, isRead: head.isRead || status === 'forgotten' || isJudged(verdict) };
}

/** Whose permission the batch's messages may need. */
function granters(batch: readonly Accepted[], heads: ReadonlyMap<string, MessageHead>): string[] {
  const owners = new Set<string>();
  for (const { message, owner, needs } of batch) {
    if (owner !== message.sender) owners.add(owner);
    for (const hash of needs.messages ?? []) {
      const other = heads.get(hash)?.owner;
      if (other !== undefined && other !== message.sender) owners.add(other);
    }
  }
  return [...owners];
}

/** What the batch's messages may want to do on somebody's behalf: what they are themselves, and what they speak of. */
function actingOf(batch: readonly Accepted[], spokenOf: readonly MessageHead[]): Acting {
  const heads = [...batch.map(headOf), ...spokenOf];
  return {
    senders: new Set(batch.map(({ message }) => message.sender)),
    values: new Set(
      heads.flatMap((head) => [head.chain, head.type, head.channel, head.contentType, aggregateKeyOf(head)]),
    ),
  };
}

/** What of the batch would cost something, and the files that it brings. */
export function wishesOf(batch: readonly Accepted[]) {
  const sizes = new Map<string, number>();
  const wishes = [];
  for (const { message, owner, changes } of batch) {
    for (const { hash, sizeBytes } of fileEffect.dataIn(changes)) sizes.set(hash, sizeBytes);
    for (const resource of resourceEffect.dataIn(changes))
      wishes.push({ itemHash: message.itemHash, time: effectiveTime(message), owner, resource });
  }
  return { wishes, sizes };
}

/** Who wants to stop whose instance in the batch, where it is not the owner. */
const stopsOf = (batch: readonly Accepted[], heads: ReadonlyMap<string, MessageHead>) =>
  batch.flatMap(({ message, needs: { stops } }) => {
    const owner = stops === undefined ? undefined : heads.get(stops)?.owner;
    const { sender, time } = message;
    return owner === undefined || owner === sender ? [] : [{ sender, owner, time }];
  });

/** What the owners ever permitted for whom the batch's messages may want to do something. Most speak for their own senders. */
async function loadHistories(
  db: Kysely<Schema>,
  batch: readonly Accepted[],
  known: ReadonlyMap<string, MessageHead>,
  spokenOf: readonly MessageHead[],
): ReturnType<typeof readSecurity> {
  const owners = granters(batch, known);
  if (owners.length === 0) return new Map();
  const times = new Set(batch.map(({ message }) => effectiveTime(message)));
  return readSecurity(db, owners, actingOf(batch, spokenOf), times);
}

export async function loadFacts(
  db: Kysely<Schema>,
  batch: readonly Accepted[],
  forgottenBy: Kept['forgottenBy'],
): Promise<BatchFacts> {
  const heads = await loadHeads(db, distinct(batch.flatMap(({ needs }) => needs.messages ?? [])));
  const files = await loadFiles(db, distinct(batch.flatMap(({ needs }) => needs.files ?? [])));
  // What a message of this batch refers to may be in this batch, too.
  const known = batch.some(({ needs }) => needs.messages)
    ? new Map([...batch.map((one) => [one.message.itemHash, headOf(one)] as const), ...heads])
    : heads;
  const histories = await loadHistories(db, batch, known, [...heads.values()]);
  const { wishes, sizes } = wishesOf(batch);
  const affordance = await loadAffordance(db, wishes, sizes);
  return {
    message: (hash) => heads.get(hash),
    hasFile: (hash) => files.has(hash),
    forgottenBy: (hash) => forgottenBy.get(hash) ?? [],
    security: (owner) => histories.get(owner) ?? [],
    isCreditEnforced: affordance.isEnforced,
    shortageOf: affordance.findShortage,
    mayStop: await loadStoppable(db, stopsOf(batch, known)),
    note: (accepted, verdict) => {
      const { status } = verdict;
      affordance.note(accepted.message.itemHash, status === 'processed');
      heads.set(accepted.message.itemHash, headAs(accepted, verdict));
      if (status !== 'processed') return;
      for (const { hash } of fileEffect.dataIn(accepted.changes)) files.add(hash);
      for (const { key, content } of aggregateEffect.dataIn(accepted.changes)) {
        if (key !== SECURITY_KEY || !(AUTHORIZATIONS in content)) continue;
        histories.get(accepted.owner)?.push({
          time: accepted.message.time,
          since: effectiveTime(accepted.message),
          itemHash: accepted.message.itemHash,
          authorizations: parseAuthorizations(content[AUTHORIZATIONS]),
        });
      }
    },
  };
}
