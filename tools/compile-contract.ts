import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './source.ts';

/** The compiler is JavaScript made from C++, and has no types. */
interface Compiler {
  compile(input: string): string;
  version(): string;
}
interface Output {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts: Record<string, Record<string, { abi: unknown; evm: { bytecode: { object: string } } }>>;
}

/** Every setting that changes the bytecode. No metadata is appended: the same source gives the same bytes everywhere. */
const SETTINGS = {
  optimizer: { enabled: true, runs: 200 },
  evmVersion: 'paris',
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
};

/** A contract of `contracts/` as its artifact: compiler, settings, ABI, bytecode. Throws where the compiler complains. */
export function compileContract(name: string): string {
  const compiler = createRequire(import.meta.url)('solc') as Compiler;
  const file = `${name}.sol`;
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: readFileSync(join(ROOT, 'contracts', file), 'utf8') } },
    settings: SETTINGS,
  };
  const output = JSON.parse(compiler.compile(JSON.stringify(input))) as Output;
  if (output.errors?.length) throw new Error(output.errors.map((one) => one.formattedMessage).join('\n'));
  const { abi, evm } = output.contracts[file]![name]!;
  const { outputSelection: _output, ...settings } = SETTINGS;
  const artifact = {
    name,
    compiler: compiler.version(),
    settings,
    abi,
    bytecode: `0x${evm.bytecode.object}`,
  };
  return `${JSON.stringify(artifact, null, 2)}\n`;
}
