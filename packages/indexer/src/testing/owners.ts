import { listContractEvents } from '../store/declared.ts';
import { ensureNetwork } from '../store/networks.ts';
import { SETTINGS_OWNER } from '../store/scans.ts';
import { unwatchContract, watchContract } from '../watch.ts';
import type { WatchLimits } from '../watch-limits.ts';
import { createIndexerDatabase, NETWORK, TOKEN } from './setup.ts';

export const STRANGER = `0x${'66'.repeat(20)}`;
export const HONEST = `0x${'77'.repeat(20)}`;
export const EXEMPT = `0x${'ee'.repeat(20)}`;
export const LIMITS: WatchLimits = {
  watchesPerOwner: 20,
  watchesMax: 100,
  exemptOwners: [EXEMPT],
  standingCredits: 0,
};

export const ownerOf = (index: number) => `0x${index.toString(16).padStart(40, '0')}`;
export const events = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `event E${from + index}()`);

/** An indexed network without a chain: what is asked for is only noted. */
export async function createNetwork(limits: WatchLimits = LIMITS) {
  const database = await createIndexerDatabase();
  const { pool } = database;
  const { id: networkId } = await ensureNetwork(pool, NETWORK, 1);
  const place = { network: NETWORK, contract: TOKEN };
  const ask = (owner: string, abi: readonly string[], startBlock = 0, contract = TOKEN, credits?: bigint) =>
    watchContract(
      pool,
      { network: NETWORK, contract, abi, startBlock, owner, credits },
      owner === SETTINGS_OWNER ? undefined : limits,
    );
  const contractId = async () =>
    (await pool.query<{ id: number }>('select id from indexer_contracts where address = $1', [TOKEN]))
      .rows[0]!.id;
  const namesRead = async () => {
    const id = await contractId();
    return (await listContractEvents(pool, [id])).get(id)?.map(({ definition }) => definition.name);
  };
  const countOf = async (table: string) => (await pool.query(`select from ${table}`)).rowCount;
  return {
    ...{ pool, networkId, ask, contractId, namesRead, countOf },
    leave: (owner: string, contract = TOKEN) => unwatchContract(pool, { ...place, contract, owner }, limits),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
