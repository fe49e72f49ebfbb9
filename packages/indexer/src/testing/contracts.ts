import { hashText } from '../abi/topic.ts';

/** Contracts of the tests, as the bytes that the EVM runs: they are put in place with anvil_setCode. */

const hex = (value: number, bytes: number): string => value.toString(16).padStart(bytes * 2, '0');
const push1 = (value: number): string => `60${hex(value, 1)}`;
const push2 = (value: number): string => `61${hex(value, 2)}`;

const [STOP, ADD, MUL, SUB, LT, EQ, ISZERO, AND, BYTE] = [
  '00',
  '01',
  '02',
  '03',
  '10',
  '14',
  '15',
  '16',
  '1a',
];
const [CALLDATALOAD, CALLDATASIZE, CALLDATACOPY, MSTORE, JUMP, JUMPI, JUMPDEST, DUP1, DUP2] = [
  '35',
  '36',
  '37',
  '52',
  '56',
  '57',
  '5b',
  '80',
  '81',
];
const LOG0 = 0xa0;

/** Emits the one log that its input describes: a byte for the number of topics, the topics, the data. */
function emitterCode(): string {
  const block = (topics: number): string => {
    const data = push1(1 + 32 * topics) + CALLDATASIZE + SUB;
    const loads = Array.from(
      { length: topics },
      (_, index) => push1(1 + 32 * (topics - 1 - index)) + CALLDATALOAD,
    );
    return (
      JUMPDEST +
      data +
      push1(1 + 32 * topics) +
      push1(0) +
      CALLDATACOPY +
      loads.join('') +
      data +
      push1(0) +
      hex(LOG0 + topics, 1) +
      STOP
    );
  };
  const blocks = [0, 1, 2, 3, 4].map(block);
  const branch = (topics: number, target: number): string =>
    push1(0) + CALLDATALOAD + push1(0) + BYTE + push1(topics) + EQ + push2(target) + JUMPI;
  const headBytes = 5 * (branch(0, 0).length / 2) + 1;
  let target = headBytes;
  const head = blocks.map((code, topics) => {
    const one = branch(topics, target);
    target += code.length / 2;
    return one;
  });
  return `0x${head.join('')}${STOP}${blocks.join('')}`;
}

export const EMITTER_CODE = emitterCode();

/** The input that makes the emitter emit this log. */
export function emitterInput(topics: readonly string[], data: string): string {
  return `0x${hex(topics.length, 1)}${topics.map((topic) => topic.slice(2)).join('')}${data.slice(2)}`;
}

export const TRANSFER = 'event Transfer(address indexed from, address indexed to, uint256 value)';

/** Emits Transfer `count` times: from (i + seed) mod 4096, to (7 i + seed) mod 65536, value i. */
function massEmitterCode(): string {
  const seed = push1(32) + CALLDATALOAD;
  const topic = `7f${hashText('Transfer(address,address,uint256)').slice(2)}`;
  const start = push1(0);
  const body = (end: number) =>
    JUMPDEST +
    push1(0) +
    CALLDATALOAD +
    DUP2 +
    LT +
    ISZERO +
    push2(end) +
    JUMPI +
    DUP1 +
    push1(0) +
    MSTORE +
    (DUP1 + push1(7) + MUL + seed + ADD + push2(0xffff) + AND) +
    (DUP2 + seed + ADD + push2(0x0fff) + AND) +
    topic +
    push1(32) +
    push1(0) +
    hex(LOG0 + 3, 1) +
    push1(1) +
    ADD +
    push2(start.length / 2) +
    JUMP;
  const end = (start + body(0)).length / 2;
  return `0x${start}${body(end)}${JUMPDEST}${STOP}`;
}

export const MASS_EMITTER_CODE = massEmitterCode();

export const massInput = (count: number, seed: number): string =>
  `0x${hex(count, 32)}${seed.toString(16).padStart(64, '0')}`;
