import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { isCid, isItemHash64 } from '../network-form/item-hash.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf, PRINTABLE } from './on-behalf.ts';
import { PROGRAM_SIZES } from './sizes.ts';

/** PROGRAM (specification, "Program content"; units of docs/decisions.md 13). */
export const ProgramContent = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: LIMITS.programNameChars, pattern: PRINTABLE }),
    description: Type.Optional(Type.String({ maxLength: LIMITS.programDescriptionChars })),
    code: Type.String({
      minLength: 1,
      maxLength: LIMITS.programCodeChars,
      description: 'source text, or the hash of a stored file',
    }),
    runtime: Type.String({
      maxLength: 64,
      description: 'nodejs, python3 or wasm, with or without a version',
    }),
    memory: Type.Integer({ ...PROGRAM_SIZES.memory, description: 'MiB' }),
    timeout: Type.Integer({ ...PROGRAM_SIZES.timeout, description: 'seconds' }),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type ProgramContent = Static<typeof ProgramContent>;

export type RuntimeName = 'nodejs' | 'python3' | 'wasm';

export interface Runtime {
  readonly runtime: RuntimeName;
  /** The version asked for, such as `16` or `3.12`; null where none is. */
  readonly version: string | null;
}

const RUNTIME = /^(nodejs|node|python|wasm|wasi)[-:@]?v?([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})?(?:\.x)?$/;
const RUNTIME_NAMES: Readonly<Record<string, RuntimeName>> = {
  nodejs: 'nodejs',
  node: 'nodejs',
  python: 'python3',
  wasm: 'wasm',
  wasi: 'wasm',
};

/** Reads a runtime's name: `nodejs`, `nodejs16`, `node:22`, `nodejs20.x`, `python3`, `python3.12`, `wasm`. Throws INVALID_CONTENT. */
export function parseRuntime(text: string): Runtime {
  const [, name = '', digits] = RUNTIME.exec(text) ?? [];
  const runtime = RUNTIME_NAMES[name];
  const isOtherPython = runtime === 'python3' && digits !== undefined && !/^3(\.|$)/.test(digits);
  if (!runtime || isOtherPython) {
    throw new AppError(
      'INVALID_CONTENT',
      'content.runtime must be nodejs, python3 or wasm, with or without a version, such as nodejs22 or python3.12',
    );
  }
  const isJustPython3 = runtime === 'python3' && digits === '3';
  return { runtime, version: isJustPython3 ? null : (digits ?? null) };
}

/** How the file of a program is packed; null where its bytes have to say. */
export type ProgramEncoding = 'plain' | 'zip' | 'squashfs' | null;

/** A program as nodes run it, whichever form its message had. */
export interface Program {
  readonly name: string;
  readonly description: string;
  readonly code:
    | { readonly kind: 'source'; readonly text: string }
    | {
        readonly kind: 'file';
        /** The hash of a file, or of the STORE message that keeps it. */
        readonly ref: string;
        readonly encoding: ProgramEncoding;
        /** What to run in it, such as `main:app`; null where the runtime's custom decides. */
        readonly entrypoint: string | null;
        /** Whether later versions of the file take its place. */
        readonly useLatest: boolean;
      };
  readonly runtime:
    | ({ readonly kind: 'named' } & Runtime)
    /** A disk image, named by the STORE message that keeps it. */
    | { readonly kind: 'image'; readonly ref: string; readonly useLatest: boolean };
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly timeoutSeconds: number;
  /** The environment that the program finds, beside what a call brings. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether it may reach the internet. */
  readonly internet: boolean;
}

const parseShape = createParser(ProgramContent, 'content');

export function parseProgramContent(value: unknown): ProgramContent {
  const content = parseShape(value);
  parseRuntime(content.runtime);
  return content;
}

/** @throws AppError INVALID_CONTENT for an unknown runtime */
export function programOf(content: ProgramContent): Program {
  const file = content.code.trim();
  return {
    name: content.name,
    description: content.description ?? '',
    code:
      isItemHash64(file) || isCid(file)
        ? { kind: 'file', ref: file, encoding: null, entrypoint: null, useLatest: false }
        : { kind: 'source', text: content.code },
    runtime: { kind: 'named', ...parseRuntime(content.runtime) },
    vcpus: 1,
    memoryMib: content.memory,
    timeoutSeconds: content.timeout,
    variables: {},
    internet: false,
  };
}
