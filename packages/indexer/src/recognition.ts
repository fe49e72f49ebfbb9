import type { Logger } from '@skerry/kit';
import type pg from 'pg';
import { type Identity, identify } from './chain/identity.ts';
import { type BlockName, CONTRADICTIONS, haveMost, judgeBlock } from './chain/source.ts';
import type { RpcPool } from './rpc/pool.ts';
import { type NetworkSettings, READ_AGAIN } from './settings.ts';
import { haltNetwork, listWindow, loadNetwork, type NetworkRow, resetNetwork } from './store/networks.ts';
import { isWaiting, listScans } from './store/scans.ts';

/** How long a halted network is left alone between two looks at whether it may go on: at most so long, and less where it is polled often. */
const LOOK_EVERY_MAX_MS = 60_000;
const POLLS_PER_LOOK = 30;
/** Blocks that all endpoints are asked for at once. */
const JUDGED_AT_ONCE = 8;

export interface RecognitionOptions {
  readonly settings: Pick<NetworkSettings, 'name' | 'chain_id' | 'on_restart' | 'poll_ms'>;
  readonly pool: pg.Pool;
  readonly rpc: RpcPool;
  readonly log: Logger;
  /** Everything is to be read again. */
  readonly onReset: () => void;
  /** Milliseconds that only pass. */
  readonly uptime?: () => number;
}

/** Whether the endpoints' chain is the stored one, at a start and for as long as the network is halted. */
export class Recognition {
  readonly #options: RecognitionOptions;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Looks in a row at which the endpoints have other blocks than those that were final. */
  #contradictions = 0;

  constructor(options: RecognitionOptions) {
    this.#options = options;
  }

  /**
   * The endpoints have to be of the chain that the settings name; its first block says whether it is the same as before. Where
   * nothing is stored yet more than half of all endpoints have to say which it is: one that is alone would say it for good.
   * Throws UPSTREAM_UNAVAILABLE where too few say.
   */
  async recognise(networkId: number): Promise<void> {
    await this.#identify(await loadNetwork(this.#options.pool, networkId), false);
  }

  /**
   * Of a halted network: it goes on once more than half of all endpoints have what is stored, and halts by no word of fewer. Where
   * the settings say so it is read again once they have something else.
   * False: it is too early to ask them again. Throws UPSTREAM_UNAVAILABLE where too few say.
   */
  async lookAgain(networkId: number): Promise<boolean> {
    const { settings, uptime = () => performance.now() } = this.#options;
    const nowMs = uptime();
    const everyMs = Math.min(LOOK_EVERY_MAX_MS, settings.poll_ms * POLLS_PER_LOOK);
    if (nowMs - this.#lookedMs < everyMs) return false;
    this.#lookedMs = nowMs;
    const network = await loadNetwork(this.#options.pool, networkId);
    if (network.haltCode === 'REORG_BELOW_FINALITY') await this.#compareFinal(network);
    else if (network.haltCode !== null) await this.#identify(network, true);
    return true;
  }

  async #identify(network: NetworkRow, isHalted: boolean): Promise<void> {
    const { settings, pool, rpc } = this.#options;
    const isStored = (said: Identity) =>
      said.chainId === network.chainId && said.genesis === network.genesisHash;
    const { chainId, genesis } = await identify(rpc, (said) => !isHalted && isStored(said));
    if (chainId !== settings.chain_id || chainId !== network.chainId) {
      const message = `the endpoints are of chain ${chainId}, the settings name ${settings.chain_id}, the data is of ${network.chainId}`;
      return this.#halt(network, 'WRONG_CHAIN', message, isHalted);
    }
    if (network.genesisHash !== null && !isStored({ chainId, genesis })) {
      if (settings.on_restart !== 'reset') {
        const message = `the chain starts with another block than before: ${READ_AGAIN}`;
        return this.#halt(network, 'CHAIN_RESTARTED', message, isHalted);
      }
      await this.#reset(network, genesis);
    } else if (network.haltCode === 'WRONG_CHAIN' || network.haltCode === 'CHAIN_RESTARTED')
      await this.#goOn(network);
    await pool.query('update indexer_networks set genesis_hash = $2 where id = $1', [network.id, genesis]);
  }

  /** Below the floor nothing is rewritten: all is of the chain that the endpoints have, or all is read again. */
  async #compareFinal(network: NetworkRow): Promise<void> {
    const { settings, pool, rpc } = this.#options;
    const blocks = await this.#listFinal(network);
    if (await haveMost(rpc, blocks)) {
      this.#contradictions = 0;
      return this.#goOn(network);
    }
    if (settings.on_restart !== 'reset') return;
    const verdict = await this.#judge(blocks);
    if (verdict === 'unknown') return;
    this.#contradictions = verdict === 'gone' ? this.#contradictions + 1 : 0;
    if (this.#contradictions < CONTRADICTIONS) return;
    this.#contradictions = 0;
    // Another chain altogether is told by its first block.
    await this.#identify(network, true);
    const { haltCode, genesisHash } = await loadNetwork(pool, network.id);
    if (haltCode === network.haltCode) await this.#reset(network, genesisHash);
  }

  /** `gone`: the endpoints have another block in the place of one of these. */
  async #judge(blocks: readonly BlockName[]): Promise<'gone' | 'stands' | 'unknown'> {
    const { rpc } = this.#options;
    for (let at = 0; at < blocks.length; at += JUDGED_AT_ONCE) {
      const part = blocks.slice(at, at + JUDGED_AT_ONCE);
      const verdicts = await Promise.all(part.map(({ number, hash }) => judgeBlock(rpc, number, hash)));
      if (verdicts.includes('gone')) return 'gone';
      // It is not waited for silent endpoints once for each part.
      if (verdicts.every((verdict) => verdict === 'unknown')) return 'unknown';
    }
    return 'stands';
  }

  /** The floor, and what scans have read last of what lies below. */
  async #listFinal({ id, floor }: NetworkRow): Promise<BlockName[]> {
    const { pool } = this.#options;
    const scans = (await listScans(pool, id)).filter((one) => isWaiting(one) && one.nextBlock <= floor + 1);
    const priors = scans.flatMap(({ nextBlock, priorHash }) =>
      priorHash === null
        ? []
        : [[`${nextBlock - 1} ${priorHash}`, { number: nextBlock - 1, hash: priorHash }] as const],
    );
    return [...(await listWindow(pool, id, floor, floor)), ...new Map(priors).values()];
  }

  async #goOn({ id, haltCode }: NetworkRow): Promise<void> {
    const { pool, log, settings } = this.#options;
    await haltNetwork(pool, id, null, null);
    log.info({ network: settings.name, code: haltCode }, 'the endpoints have the stored chain: going on');
  }

  async #reset({ id }: NetworkRow, genesisHash: string | null): Promise<void> {
    const { pool, log, settings, onReset } = this.#options;
    log.warn(
      { network: settings.name },
      'the endpoints have another chain than the stored one: reading everything again',
    );
    await resetNetwork(pool, id, genesisHash);
    onReset();
  }

  async #halt({ id, haltCode }: NetworkRow, code: string, message: string, isHalted: boolean): Promise<void> {
    // Said already.
    if (isHalted && haltCode === code) return;
    const { pool, log, settings } = this.#options;
    await haltNetwork(pool, id, code, message);
    log.error({ network: settings.name, code }, message);
  }
}
