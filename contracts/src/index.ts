import artifact from '../MessageArchive.json' with { type: 'json' };

export interface Contract {
  readonly abi: readonly unknown[];
  /** What a transaction without a receiver puts on the chain: `0x` and hexadecimal digits. */
  readonly bytecode: string;
}

/** Source: contracts/MessageArchive.sol; compiled by `npm run generate`. */
export const messageArchive: Contract = { abi: artifact.abi, bytecode: artifact.bytecode };
