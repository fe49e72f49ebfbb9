import type { Write } from '@skerry/database';
import type { ContractEvent } from '@skerry/indexer';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { unconfirmMessages } from '../../state/messages/confirmations.ts';
import type { Schema, VerdictReason } from '../../store/schema.ts';
import { parseSyncContent } from './archive.ts';
import { decideChanges } from './decide.ts';
import { ARCHIVE_LIMITS } from './limits.ts';
import { reopenPacked } from './packed.ts';
import type { ChainReader } from './reader.ts';
import type { AnchorSettings } from './settings.ts';
import {
  deleteEvent,
  type FollowedTo,
  insertEvent,
  listKept,
  loadFollowed,
  lockFollowed,
  type NewEvent,
  noteFollowed,
  retimeEvent,
} from './store.ts';

export interface FollowerOptions {
  readonly chain: ChainReader;
  readonly db: Kysely<Schema>;
  readonly write: Write<Schema>;
  readonly settings: AnchorSettings;
  readonly now: () => number;
  readonly log: Logger;
}

export interface StepResult {
  readonly gone: number;
  readonly fresh: number;
  /** There is more to read at once. */
  readonly isCut: boolean;
}

const refusalOf = (error: unknown): VerdictReason => {
  if (!(error instanceof AppError)) throw error;
  return { code: error.code, message: error.message };
};

/** What is kept of an event: refused at once where it is nobody's that is trusted, or says nothing that can be read. */
function readSyncEvent(
  network: string,
  { blockNumber, logIndex, transactionHash, timestamp, name, args }: ContractEvent,
  emitters: ReadonlySet<string>,
): NewEvent {
  const emitter = typeof args.addr === 'string' ? args.addr.toLowerCase() : '';
  const content = typeof args.message === 'string' ? args.message : '';
  const place = { network, blockNumber, logIndex, transactionHash };
  const event = { ...place, blockTime: timestamp, emitter, content };
  if (name !== 'SyncEvent' || !emitters.has(emitter)) {
    const message = `archives of ${emitter || 'nobody'} are not read`;
    return { ...event, cid: null, refusal: { code: 'EMITTER_NOT_AUTHORIZED', message } };
  }
  try {
    return { ...event, cid: parseSyncContent(content).cid ?? null, refusal: undefined };
  } catch (error) {
    return { ...event, cid: null, refusal: refusalOf(error) };
  }
}

/** Where a look begins: above what is settled, or anew where the chain is another one than it was. */
const firstBlockOf = (settings: AnchorSettings, followed: FollowedTo, genesisHash: string | null) =>
  followed.genesisHash !== null && followed.genesisHash !== genesisHash
    ? 0
    : Math.max(settings.startBlock, followed.settledBlock + 1);

/**
 * Keeps the events of the contract as the chain has them: a reorganisation takes events away with what they confirmed,
 * and brings others. The indexer has read the chain; this looks only at what may have changed since the last look.
 */
export async function followOnce({
  chain: reader,
  db,
  write,
  settings,
  now,
  log,
}: FollowerOptions): Promise<StepResult> {
  const { emitters, chain } = settings;
  const network = settings.network.name;
  const nothing = { gone: 0, fresh: 0, isCut: false };
  const before = await loadFollowed(db, network);
  const from = firstBlockOf(settings, before, await reader.findGenesisHash());
  const seen = await reader.readEvents(from, ARCHIVE_LIMITS.events);
  if (!seen || seen.readTo === null || firstBlockOf(settings, before, seen.genesisHash) !== from)
    return nothing;
  const { readTo, isCut, genesisHash } = seen;
  return write(async (writer) => {
    const { trx } = writer;
    const locked = await lockFollowed(trx, network);
    // Another process was faster.
    if (locked.settledBlock !== before.settledBlock || locked.genesisHash !== before.genesisHash)
      return nothing;
    const kept = await listKept(trx, network, from);
    const { gone, fresh, retimed } = decideChanges(kept, seen.events, readTo, isCut);
    for (const event of gone) {
      const { blockNumber: height, transactionHash: hash } = event;
      await unconfirmMessages(writer, event, { chain, height, hash }, now());
      await deleteEvent(trx, event);
    }
    for (const event of retimed) await retimeEvent(trx, event);
    for (const event of fresh) await insertEvent(trx, readSyncEvent(network, event, emitters), now());
    if (before.genesisHash !== null && before.genesisHash !== genesisHash) await reopenPacked(trx, network);
    const settledBlock = Math.min(seen.settledTo, readTo);
    if (
      settledBlock !== before.settledBlock ||
      readTo !== before.readBlock ||
      genesisHash !== before.genesisHash
    )
      await noteFollowed(trx, network, { settledBlock, readBlock: readTo, genesisHash });
    if (gone.length > 0) log.info({ network, gone: gone.length }, 'a reorg removed archives from the chain');
    return { gone: gone.length, fresh: fresh.length, isCut };
  });
}
