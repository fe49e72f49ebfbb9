import { Anvil } from '../../packages/indexer/src/testing/anvil.ts';
import { MASS_EMITTER_CODE, massInput } from '../../packages/indexer/src/testing/contracts.ts';
import { TOKEN } from '../../packages/indexer/src/testing/setup.ts';
import { tell } from '../measure/figures.ts';

const EVENTS_PER_BLOCK = 1_000;
const BLOCKS_PER_TURN = 50;

/** A chain with so many transfers, a thousand in each block, and blocks behind them so that all of them are final. */
export async function makeChain(events: number): Promise<Anvil> {
  const anvil = await Anvil.start(['--slots-in-an-epoch', '1']);
  await anvil.setCode(TOKEN, MASS_EMITTER_CODE);
  const blocks = Math.ceil(events / EVENTS_PER_BLOCK);
  for (let block = 0; block < blocks; block++) {
    await anvil.send(TOKEN, massInput(EVENTS_PER_BLOCK, block * 13), { gas: '0x2faf080' });
    await anvil.mine();
    if (block % (BLOCKS_PER_TURN * 4) === 0) tell(`  ${block * EVENTS_PER_BLOCK} events made`);
  }
  await anvil.mine(8);
  return anvil;
}
