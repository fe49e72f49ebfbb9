import { isDeepStrictEqual } from 'node:util';
import type { Write } from '@skerry/database';
import type { ContractEvent, ContractEvents, IndexedChain } from '@skerry/indexer';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely, Transaction } from 'kysely';
import { unconfirmMessages } from '../../state/messages/confirmations.ts';
import type { Schema, VerdictReason } from '../../store/schema.ts';
import { parseSyncContent } from './archive.ts';
import type { Look } from './catch-up.ts';
import { decideChanges, isNothing } from './decide.ts';
import { ARCHIVE_LIMITS } from './limits.ts';
import { reopenPacked, unsettlePacked } from './packed.ts';
import type { ChainReader } from './reader.ts';
import type { AnchorSettings } from './settings.ts';
import {
  deleteEvent,
  type FollowedTo,
  forgetRefused,
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
  /** There is more to read at once: the next look begins further on. */
  readonly isCut: boolean;
  /** Undefined where the chain could not be looked at, or another process was faster. */
  readonly look?: Look;
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

/** Where a look begins. */
interface Start {
  /** Events are read from this block on. */
  readonly from: number;
  /** Kept ones are compared with them from this one on. */
  readonly keptFrom: number;
  /** It is another chain or another contract than it was. */
  readonly isOther: boolean;
  /** It is the same, of which blocks are read that were settled: the settings start earlier, or the index has read the chain anew. */
  readonly isAgain: boolean;
}

const differs = <Value>(before: Value | null, now: Value) => before !== null && before !== now;

/** Above what is settled, unless the settings or the chain are others than they were. Pure. */
function startOf(
  { startBlock, contract }: Pick<AnchorSettings, 'startBlock' | 'contract'>,
  followed: FollowedTo,
  { genesisHash, reading }: IndexedChain,
): Start {
  const isOther = differs(followed.genesisHash, genesisHash) || differs(followed.contract, contract);
  if (isOther) return { from: startBlock, keptFrom: 0, isOther, isAgain: false };
  const isEarlier = followed.startBlock !== null && startBlock < followed.startBlock;
  const isAgain = isEarlier || differs(followed.reading, reading);
  const from = isAgain ? startBlock : Math.max(startBlock, followed.settledBlock + 1);
  return { from, keptFrom: from, isOther, isAgain };
}

/** To be asked once the settings were read: emitters may be believed now who were not before. */
export const forgiveEmitters = ({ write, settings }: Pick<FollowerOptions, 'write' | 'settings'>) =>
  write(async ({ trx }) => {
    const network = settings.network.name;
    await lockFollowed(trx, network);
    await forgetRefused(trx, network, settings.emitters);
  });

/**
 * What the indexer has yet to read, up to where it was, is not gone. A chain that is shorter now is read whole where the indexer has come to
 * its tip: a head alone may be that of an endpoint that lags. Pure.
 */
const isReadAgain = (
  { coveredTo, isAtTip, head }: ContractEvents,
  { readBlock }: Pick<FollowedTo, 'readBlock'>,
): boolean =>
  coveredTo !== null && (coveredTo >= (readBlock ?? 0) || (isAtTip && head !== null && coveredTo >= head));

const isSame = (a: FollowedTo, b: FollowedTo) =>
  a.settledBlock === b.settledBlock &&
  a.genesisHash === b.genesisHash &&
  a.reading === b.reading &&
  a.contract === b.contract &&
  a.startBlock === b.startBlock;

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
  const { emitters, chain, contract, startBlock } = settings;
  const network = settings.network.name;
  const nothing = { gone: 0, fresh: 0, isCut: false };
  const before = await loadFollowed(db, network);
  const indexed = await reader.findChain();
  if (!indexed) return nothing;
  const start = startOf(settings, before, indexed);
  const seen = await reader.readEvents(start.from, ARCHIVE_LIMITS.events);
  // Where they differ it was read anew meanwhile.
  if (!seen || !isDeepStrictEqual(startOf(settings, before, seen), start)) return nothing;
  const { isCut, head, requests, genesisHash, reading } = seen;
  const isAnew = start.isOther || start.isAgain;
  if (start.isAgain && !isReadAgain(seen, before))
    return { ...nothing, look: { isAnew, isCut: true, readTo: -1, head, requests } };
  if (seen.readTo === null) return nothing;
  const { readTo } = seen;
  const settledBlock = Math.min(seen.settledTo, readTo);
  // What is kept above is compared by later looks, before which the index may be read anew once more.
  const readBlock = isCut && !start.isOther ? Math.max(readTo, before.readBlock ?? readTo) : readTo;
  const after = { settledBlock, readBlock, genesisHash, reading, contract, startBlock };
  const isFurther = !isSame(after, before) || readBlock !== before.readBlock;
  const look = { isAnew, isCut, readTo, head, requests };
  // Where a look is full of what can still change, the next one begins where it did: it waits until some of that is settled.
  const isMore = isCut && settledBlock >= start.from;
  const changesIn = async (at: Kysely<Schema> | Transaction<Schema>) =>
    decideChanges(await listKept(at, network, start.keptFrom), seen.events, readTo, isCut);
  // So is nearly every look: none of these locks or writes anything.
  if (!isFurther && isNothing(await changesIn(db))) return { ...nothing, isCut: isMore, look };
  return write(async (writer) => {
    const { trx } = writer;
    const locked = await lockFollowed(trx, network);
    // Another process was faster.
    if (!isSame(locked, before)) return nothing;
    const { gone, fresh, retimed } = await changesIn(trx);
    for (const event of gone) {
      const { blockNumber: height, transactionHash: hash } = event;
      await unconfirmMessages(writer, event, { chain, height, hash }, now());
      await deleteEvent(trx, event);
    }
    for (const event of retimed) await retimeEvent(trx, event);
    for (const event of fresh) await insertEvent(trx, readSyncEvent(network, event, emitters), now());
    if (start.isOther) await reopenPacked(trx, network);
    else await unsettlePacked(trx, network, gone);
    if (isFurther) await noteFollowed(trx, network, after);
    if (gone.length > 0)
      log.info(
        { network, gone: gone.length },
        start.isOther ? 'another chain or contract is followed' : 'a reorg removed archives from the chain',
      );
    return { gone: gone.length, fresh: fresh.length, isCut: isMore, look };
  });
}
