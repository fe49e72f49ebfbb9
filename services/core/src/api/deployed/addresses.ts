import type { Handlers } from '@skerry/kit';
import { AppError, creditsOf, LIMITS, nanoOf, normaliseAddress, parseMessageHash } from '@skerry/protocol';
import type { ADDRESSES_API, AddressStatsView } from '@skerry/protocol/api/core/deployed/addresses';
import { Type } from '@skerry/protocol/type';
import {
  listAllChannels,
  listBusiest,
  listChannelsOf,
  listPostTypesOf,
  spellingsOf,
  statsOf,
} from '../../state/addresses/activity.ts';
import { listFilesOf } from '../../state/addresses/files.ts';
import { listCredit, sumHistory } from '../../state/credits/history.ts';
import { parseListFilter } from '../../state/lists/parameters.ts';
import { isoOf } from '../../state/messages/view.ts';
import { readAddress } from '../address.ts';
import { historyFilterOf } from '../credits/history-filter.ts';
import { createCursor } from '../cursor.ts';
import { deployedPageOf, deployedPaginationOf, nextCursorOf, sizeOfPage } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { authorizationHandlers } from './authorizations.ts';

const addressCursor = createCursor(
  Type.Object({ a: Type.String({ maxLength: LIMITS.addressChars }) }, { additionalProperties: false }),
);

/** Two spellings of one parameter, of which some clients send the second. Throws INVALID_PARAMETERS where they say two things. */
function either<T>(spellings: Readonly<Record<string, T | undefined>>): T | undefined {
  const said = new Set(Object.values(spellings).filter((value) => value !== undefined));
  if (said.size <= 1) return [...said][0];
  const names = Object.keys(spellings).map((name) => `query.${name}`);
  throw new AppError('INVALID_PARAMETERS', `${names.join(' and ')} mean the same; send one of them`);
}

type Handled = Handlers<typeof ADDRESSES_API>;
type Used = Pick<Rooms, 'answers' | 'db' | 'now' | 'longLists'>;

/** By addresses as they were asked for; one that sent nothing has none. */
async function statsBy(db: Rooms['db'], asked: readonly string[]): Promise<Record<string, AddressStatsView>> {
  const stats: Record<string, AddressStatsView> = {};
  // One after another: each is several queries already.
  for (const address of new Set(asked)) {
    const own = await statsOf(db, normaliseAddress(address));
    if (own.messages > 0) stats[address] = own;
  }
  return stats;
}

/** By addresses as they spell themselves. */
async function statsOfKept(db: Rooms['db'], addresses: readonly string[]) {
  const [stats, spellings] = await Promise.all([statsBy(db, addresses), spellingsOf(db, addresses)]);
  return Object.fromEntries(
    Object.entries(stats).map(([address, own]) => [spellings.get(address) ?? address, own]),
  );
}

/** What an address keeps and did. */
const activity = ({
  db,
  longLists,
}: Used): Pick<Handled, 'listAddressFiles' | 'listAddressPostTypes' | 'listAddressChannels'> => ({
  async listAddressFiles({ params, query, reply }) {
    const order = either({ sort_order: query.sort_order, sortOrder: query.sortOrder });
    const hash = query.file_hash === undefined ? undefined : parseMessageHash(query.file_hash).hash;
    const page = { ...deployedPageOf(query), oldestFirst: order === 1 };
    const owner = await readAddress(db, params.address);
    const owned = await listFilesOf(longLists.askedIn(db, reply), owner, hash, page);
    return {
      address: params.address,
      total_size: owned.totalBytes,
      files: owned.files.map(({ fileHash, sizeBytes, time, itemHash }) => ({
        ...{ file_hash: fileHash, size: sizeBytes, type: 'file' as const },
        ...{ created: isoOf(time), item_hash: itemHash },
      })),
      ...deployedPaginationOf(query, owned.total),
    };
  },
  async listAddressPostTypes({ params: { address }, reply }) {
    const on = longLists.askedIn(db, reply);
    return { address, post_types: await listPostTypesOf(on, await readAddress(db, address)) };
  },
  async listAddressChannels({ params: { address }, reply }) {
    const on = longLists.askedIn(db, reply);
    return { address, channels: await listChannelsOf(on, await readAddress(db, address)) };
  },
});

/** What all addresses did. */
const activityOfAll = ({
  db,
  longLists,
}: Used): Pick<Handled, 'getAddressStats' | 'listAddressStats' | 'listChannels'> => ({
  async getAddressStats({ query, reply }) {
    const on = longLists.askedIn(db, reply);
    const repeated = [query['addresses[]'] ?? []].flat();
    const asked = [...repeated, ...(parseListFilter('addresses', query.addresses) ?? [])];
    if (asked.length > LIMITS.pageSizeMax)
      throw new AppError('INVALID_PARAMETERS', `at most ${LIMITS.pageSizeMax} addresses at a time`);
    if (asked.length > 0) return { data: await statsBy(on, asked) };
    const page = { smallestFirst: false, limit: LIMITS.pageSizeMax, offset: 0 };
    return { data: await statsOfKept(on, (await listBusiest(on, page)).addresses) };
  },
  async listAddressStats({ query, reply }) {
    const on = longLists.askedIn(db, reply);
    const limit = query.pagination === 0 ? LIMITS.pageSizeMax : query.pagination;
    const { addresses, total } = await listBusiest(on, {
      ...{ contains: query.addressContains, smallestFirst: query.sortOrder === 1 },
      type: query.sortBy === 'MESSAGES' ? undefined : query.sortBy,
      ...{ limit, offset: (query.page - 1) * limit },
    });
    return {
      data: await statsOfKept(on, addresses),
      ...deployedPaginationOf({ page: query.page, pagination: limit }, total),
      pagination_item: 'addresses',
    };
  },
  listChannels: async ({ reply }) => ({ channels: await listAllChannels(longLists.askedIn(db, reply)) }),
});

/** What addresses have. */
const credit = ({
  db,
  now,
  longLists,
}: Used): Pick<Handled, 'listBalances' | 'listCreditBalances' | 'getCreditSummary'> => ({
  listBalances({ query }) {
    either({ min_balance: query.min_balance, minBalance: query.minBalance });
    return { balances: [], ...deployedPaginationOf(query, 0), pagination_item: 'balances' };
  },
  async listCreditBalances({ query, reply }) {
    const min = either({ min_balance: query.min_balance, minBalance: query.minBalance });
    const after = addressCursor.read(query.cursor)?.a;
    const limit = sizeOfPage(query.pagination);
    const page = { limit, offset: (query.page - 1) * limit, after };
    const minNano = min === undefined ? undefined : nanoOf(Math.ceil(min));
    const { rows, total } = await listCredit(longLists.askedIn(db, reply), now() / 1000, minNano, page);
    const spellings = await spellingsOf(
      db,
      rows.map(({ owner }) => owner),
    );
    const { pagination_per_page, ...numbered } = deployedPaginationOf(query, total);
    return {
      credit_balances: rows.map(({ owner, nano }) => ({
        address: spellings.get(owner) ?? owner,
        credits: Number(creditsOf(nano)),
      })),
      pagination_per_page,
      ...(query.cursor === undefined ? numbered : {}),
      pagination_item: 'credit_balances',
      next_cursor: nextCursorOf(rows, limit, (last) => addressCursor.write({ a: last.owner })),
    };
  },
  async getCreditSummary({ params, query, reply }) {
    const filter = historyFilterOf(await readAddress(db, params.address), query);
    const sums = filter
      ? await sumHistory(longLists.askedIn(db, reply), filter)
      : { count: 0, incoming: 0n, outgoing: 0n };
    return {
      address: params.address,
      entry_count: sums.count,
      total_amount: Number(creditsOf(sums.incoming + sums.outgoing)),
      total_incoming: Number(creditsOf(sums.incoming)),
      total_outgoing: Number(creditsOf(sums.outgoing)),
    };
  },
});

/** What deployed nodes answer of addresses. */
export const addressHandlers = (rooms: Used): Handled => ({
  ...activity(rooms),
  ...activityOfAll(rooms),
  ...credit(rooms),
  ...authorizationHandlers(rooms),
});
