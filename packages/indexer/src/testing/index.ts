export { Anvil } from './anvil.ts';
export { TRANSFER } from './contracts.ts';
export { FaultProxy } from './fault-proxy.ts';
export {
  compareWithChain,
  NETWORK,
  networkSettings,
  OTHER,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './setup.ts';
