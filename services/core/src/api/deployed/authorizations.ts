import type { Handlers } from '@skerry/kit';
import { checksumAddress, normaliseAddress, parseEvmAddress } from '@skerry/protocol';
import type { ADDRESSES_API } from '@skerry/protocol/api/core/deployed/addresses';
import { spellingsOf } from '../../state/addresses/activity.ts';
import { type Entry, listGranted, listReceived } from '../../state/addresses/authorizations.ts';
import { parseListFilter } from '../../state/lists/parameters.ts';
import { readAddress } from '../address.ts';
import { deployedPageOf, deployedPaginationOf } from '../pagination.ts';
import type { Rooms } from '../rooms.ts';

interface PermitQuery {
  readonly channels?: string | undefined;
  readonly types?: string | undefined;
  readonly postTypes?: string | undefined;
  readonly chains?: string | undefined;
  readonly aggregateKeys?: string | undefined;
  readonly page: number;
  readonly pagination: number;
}

const EVM = /^0x[0-9a-f]{40}$/i;
const isSame = (one: string, other: string) => normaliseAddress(one) === normaliseAddress(other);

/** How owners may have written an address: as it was asked for, in lower case, or with a checksum. */
function spellings(address: string): string[] {
  if (!EVM.test(address)) return [address];
  const plain = parseEvmAddress(address);
  return [...new Set([address, plain, checksumAddress(plain)])];
}

/** What an entry leaves open, any value fits. */
function fitterOf(query: PermitQuery): (entry: Entry) => boolean {
  const asked = (['channels', 'types', 'postTypes', 'chains', 'aggregateKeys'] as const).flatMap((name) => {
    const values = parseListFilter(name, query[name]);
    return values ? [{ name, values }] : [];
  });
  const fields = {
    channels: 'channels',
    types: 'types',
    postTypes: 'post_types',
    chains: 'chain',
    aggregateKeys: 'aggregate_keys',
  } as const;
  return (entry) =>
    asked.every(({ name, values }) => {
      const own = [entry[fields[name]] ?? []].flat();
      return own.length === 0 || own.some((one) => values.includes(String(one)));
    });
}

const withoutAddress = ({ address: _, ...entry }: Entry) => entry;

/** A page of addresses, each with what is left of its entries. */
function pageOfEntries(address: string, byOther: ReadonlyMap<string, readonly Entry[]>, query: PermitQuery) {
  const fits = fitterOf(query);
  const left = [...byOther]
    .map(([other, entries]) => [other, entries.filter(fits).map(withoutAddress)] as const)
    .filter(([, entries]) => entries.length > 0);
  const { limit, offset } = deployedPageOf(query);
  return {
    authorizations: Object.fromEntries(left.slice(offset, offset + limit)),
    ...deployedPaginationOf(query, left.length),
    pagination_item: 'authorizations' as const,
    address,
  };
}

/** Who may act on whose behalf (docs/decisions.md 6), in both directions. */
export const authorizationHandlers = ({
  db,
  answers,
  longLists,
}: Pick<Rooms, 'db' | 'answers' | 'longLists'>): Pick<
  Handlers<typeof ADDRESSES_API>,
  'listGranted' | 'listReceived'
> => ({
  async listGranted({ params, query }) {
    const { grantee } = query;
    const entries = await listGranted(db, await readAddress(db, params.address));
    const asked = entries.filter(({ address }) => grantee === undefined || isSame(address, grantee));
    return pageOfEntries(
      params.address,
      Map.groupBy(asked, ({ address }) => address),
      query,
    );
  },
  async listReceived({ params, query, reply }) {
    const granter = query.granter === undefined ? undefined : normaliseAddress(query.granter);
    const on = longLists.askedIn(db, reply);
    const received = await listReceived(on, spellings(params.address), granter, answers.of(reply));
    // What others may permit it is not looked at where one is asked for.
    if (received.length === 0 && granter === undefined) await readAddress(db, params.address);
    const known = await spellingsOf(
      db,
      received.map(({ owner }) => owner),
    );
    const byOwner = new Map(received.map(({ owner, entries }) => [known.get(owner) ?? owner, entries]));
    return pageOfEntries(params.address, byOwner, query);
  },
});
