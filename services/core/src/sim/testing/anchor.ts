import type { Database } from '@skerry/database';
import { createWrite } from '@skerry/database';
import { NO_NETWORKS } from '@skerry/indexer';
import type { Logger } from '@skerry/kit';
import { sql } from 'kysely';
import type { Emitter } from '../../chains/anchoring/emitter.ts';
import { followOnce } from '../../chains/anchoring/follower.ts';
import { Packer } from '../../chains/anchoring/packer.ts';
import { Processor } from '../../chains/anchoring/processor.ts';
import type { ChainReader } from '../../chains/anchoring/reader.ts';
import { parseAnchorSettings } from '../../chains/anchoring/settings.ts';
import type { Schema } from '../../store/schema.ts';
import type { TestCore } from '../../testing/core.ts';
import { EMITTER, type VirtualChain } from './chain.ts';

const NETWORK = 'sim';
const ROUNDS_MAX = 50;

const [SETTINGS] = parseAnchorSettings(
  {
    anchors: [
      {
        network: { name: NETWORK, chain_id: 1, endpoints: ['http://127.0.0.1:1'] },
        chain: 'ETH',
        contract: `0x${'c0'.repeat(20)}`,
        emitters: [EMITTER],
        archive_horizon_seconds: 3_600,
      },
    ],
  },
  NO_NETWORKS,
).anchors;

export const PACKING = {
  keyFile: '',
  intervalMs: 35_000,
  messagesMax: 20,
  maxFeeGwei: 150,
  resendMs: 60_000,
};

export interface NodeAnchorOptions {
  readonly core: TestCore;
  readonly database: Database<Schema>;
  readonly view: ChainReader;
  /** The node packs where there is one. */
  readonly emitter: Pick<Emitter, 'look' | 'prepare' | 'send'> | undefined;
  readonly random: () => number;
  readonly log: Logger;
}

/** The anchoring of one node, a step at a time. */
export class NodeAnchor {
  readonly #processor: Processor;
  readonly #packer: Packer | undefined;
  readonly #follow: () => ReturnType<typeof followOnce>;

  constructor({ core, database, view, emitter, random, log }: NodeAnchorOptions) {
    const { db, intake, ipfs: files, now } = core.rooms;
    const write = createWrite<Schema>(database.pool);
    const signal = new AbortController().signal;
    const common = { db, write, files, intake, now, signal, settings: SETTINGS!, log };
    this.#follow = () => followOnce({ ...common, chain: view });
    this.#processor = new Processor({ ...common, random });
    this.#packer =
      emitter &&
      new Packer({ ...common, emitter, network: NETWORK, settings: PACKING, isCaughtUp: () => true });
  }

  /** Notes what changed on the chain, and reads the archives that are due. */
  async follow(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX && (await this.#follow()).isCut; round++);
    for (let round = 0; round < ROUNDS_MAX && (await this.#processor.round()); round++);
    for (let round = 0; round < ROUNDS_MAX && (await this.#processor.date()); round++);
  }

  async pack(): Promise<void> {
    await this.#packer?.round();
  }
}

interface ConfirmationRow {
  readonly item_hash: string;
  readonly height: number;
  readonly hash: string;
}

/** What is wrong with a node's confirmations: each must be of a transaction in a block, and nothing in force without one. */
export async function findAnchorFaults(core: TestCore, chain: VirtualChain): Promise<string[]> {
  const { db } = core.rooms;
  const { rows } = await sql<ConfirmationRow>`
    select item_hash, block_number as height, tx_hash as hash from confirmations`.execute(db);
  const stale = rows.filter(
    ({ height, hash }) =>
      !chain.blocks[height]?.transactions.some((one) => one.hash === hash && one.from === EMITTER),
  );
  const { rows: open } = await sql<{ item_hash: string }>`
    select item_hash from messages m where status = 'processed' and not exists (
      select from confirmations c where c.item_hash = m.item_hash and c.sender = m.sender)`.execute(db);
  return [
    ...(stale.length > 0 ? [`${stale.length} confirmations of transactions that are in no block`] : []),
    ...(open.length > 0 ? [`${open.length} messages in force that nothing confirms`] : []),
  ];
}

/** A node's confirmations as one text: the same on every node that followed the same chain. */
export async function describeConfirmations(core: TestCore): Promise<string> {
  const { rows } = await sql<ConfirmationRow>`
    select item_hash, block_number as height, tx_hash as hash from confirmations order by 1, 2, 3`.execute(
    core.rooms.db,
  );
  return rows.map(({ item_hash, height, hash }) => `${item_hash} ${height} ${hash}`).join('\n');
}
