import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { CoreClient } from '@skerry/client/core-client';
import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import {
  AppError,
  isErrorCode,
  LIMITS,
  parseExactJson,
  parseProgramContent,
  parseRuntime,
  programNeeds,
  programOf,
  sha256Hex,
} from '@skerry/protocol/forms';
import { ownerOf } from '../address.ts';
import { confirmLoss, type LossOptions } from '../confirm.ts';
import type { Context } from '../context.ts';
import { tellPrice } from '../credits/price.ts';
import { unreadable } from '../files/read-text.ts';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { blameOption, PROGRAM_OPTIONS } from '../messages/blame-option.ts';
import { proveShown } from '../messages/proof.ts';
import { noteVerdict, verdictFields } from '../messages/verdict.ts';
import { plainText, renderBytes, renderTime } from '../output/text.ts';
import { parseProgramHash } from './program-hash.ts';

export interface ProgramCreateOptions {
  readonly name?: string;
  readonly runtime?: string;
  readonly memory: number;
  /** Milliseconds. */
  readonly timeout: number;
  readonly description?: string;
}

export interface ProgramListOptions {
  readonly address?: string;
  readonly page?: number;
  readonly limit: number;
}

export interface ProgramRunOptions {
  /** `name=value` */
  readonly var: readonly string[];
}

const RUNTIME_OF_ENDING: Readonly<Record<string, string>> = {
  '.py': 'python3',
  '.js': 'nodejs',
  '.mjs': 'nodejs',
  '.cjs': 'nodejs',
  '.wasm': 'wasm',
};

/** The runtime that was given, else the one that the ending of the file stands for. */
export function chooseRuntime(path: string, given: string | undefined): string {
  if (given !== undefined) {
    blameOption(PROGRAM_OPTIONS, () => parseRuntime(given));
    return given;
  }
  const runtime = RUNTIME_OF_ENDING[extname(path).toLowerCase()];
  if (!runtime)
    throw new AppError(
      'INVALID_PARAMETERS',
      `unknown runtime for ${basename(path)}: use --runtime nodejs, python3 or wasm`,
    );
  return runtime;
}

/** Text that fits into a message; undefined for bytes and for what is larger: those are stored as a file. */
export function asSource(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) throw new AppError('INVALID_PARAMETERS', 'the file is empty');
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.length <= LIMITS.programCodeChars && !text.includes('\0') ? text : undefined;
  } catch {
    return undefined;
  }
}

const NAME_CHARS = LIMITS.programNameChars;

const readCode = (path: string): Promise<Buffer<ArrayBuffer>> =>
  readFile(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EISDIR') throw unreadable(path, error);
    throw new AppError(
      'INVALID_PARAMETERS',
      `${path} is a directory: pack what is in it into a .zip archive, and name that`,
      { cause: error },
    );
  });

export async function createProgram(
  context: Context,
  path: string,
  options: ProgramCreateOptions,
): Promise<void> {
  const { output } = context;
  const bytes = await readCode(path);
  if (bytes.length > LIMITS.programFileBytes)
    throw new AppError(
      'INVALID_CONTENT',
      `${path} is too large: the code of a program has at most ${renderBytes(LIMITS.programFileBytes)}, packed or not`,
    );
  const runtime = chooseRuntime(path, options.runtime);
  const source = asSource(bytes);
  const { memory, timeout, description } = options;
  // All of it is checked before the file is sent: its message would be in force and cost without the program.
  const asked = {
    name: options.name ?? basename(path).slice(0, NAME_CHARS),
    code: source ?? sha256Hex(bytes),
    runtime,
    memory,
    timeout: Math.ceil(timeout / 1000),
    ...(description === undefined ? {} : { description }),
  };
  const content = blameOption(PROGRAM_OPTIONS, () => parseProgramContent(asked));
  const core = await context.openWriter();
  await tellPrice(context, { ...programNeeds(programOf(content)), kind: 'program' });
  const send = () => core.createProgram(content);
  const answer =
    source === undefined
      ? await afterAccepted(output, await storeCode(core, { path, bytes, output }), send)
      : await send();
  const { item_hash: hash } = answer;
  output.result({ program_hash: hash, ...content, ...verdictFields(answer) }, hash);
}

/** The file of a program, which costs from then on. */
async function storeCode(
  core: CoreClient,
  { path, bytes, output }: { path: string; bytes: Uint8Array<ArrayBuffer>; output: Context['output'] },
): Promise<Accepted> {
  const name = basename(path);
  const { file_hash: hash, item_hash: itemHash } = await core.storeFile(
    new Blob([bytes]),
    name,
    sha256Hex(bytes),
  );
  output.note(`stored ${name} (${renderBytes(bytes.length)}) as ${hash}`);
  return {
    what: `${name} was stored as ${hash}`,
    ids: { file_hash: hash, item_hash: itemHash },
    hint: `the same command stores it only once; "skerry message forget ${itemHash}" gives it up`,
  };
}

function parseValue(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof AppError) throw error;
    return text;
  }
}

/** `name=value` pairs as an object. A value that is JSON is read as such, anything else is text. Throws INVALID_PARAMETERS. */
export function parseVariables(pairs: readonly string[]): Record<string, unknown> {
  const variables = new Map<string, unknown>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, Math.max(at, 0));
    if (name === '')
      throw new AppError('INVALID_PARAMETERS', `a variable must be name=value, not ${JSON.stringify(pair)}`);
    if (variables.has(name))
      throw new AppError(
        'INVALID_PARAMETERS',
        `the variable ${JSON.stringify(name)} is given more than once`,
      );
    variables.set(name, parseValue(pair.slice(at + 1)));
  }
  return Object.fromEntries(variables);
}

const tracebackOf = ({ details }: AppError) => (details as { traceback?: unknown } | undefined)?.traceback;

/** Throws PROGRAM_FAILED where the program's own answer is a failure, once that is printed. */
export async function runProgram(context: Context, text: string, options: ProgramRunOptions): Promise<void> {
  const { reader, output } = context;
  const hash = parseProgramHash(text);
  const response = await reader.runProgram(hash, parseVariables(options.var)).catch((error: unknown) => {
    if (error instanceof AppError && isErrorCode(error.code) && typeof tracebackOf(error) === 'string')
      output.note(String(tracebackOf(error)).trimEnd());
    throw error;
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const contentType = response.headers.get('content-type') ?? '';
  const { status } = response;
  const answer = { status, content_type: contentType, output: outputOf(bytes, contentType) };
  if (output.json) output.result(answer, '');
  else {
    await output.bytes(bytes);
    if (bytes.length > 0 && bytes.at(-1) !== 0x0a && output.stdout.isTTY) output.stdout.write('\n');
  }
  if (status >= 400)
    throw new AppError('PROGRAM_FAILED', `the program answered ${status}`, { details: { status } });
}

/** The types of the language do not know yet that the source of a number is given, nor that it can be written as it is. */
const { parse, rawJSON } = JSON as unknown as {
  parse(
    text: string,
    revive: (key: string, value: unknown, told: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
};

/** JSON whose numbers are written again as they came: of many, JavaScript keeps other digits. */
const parseKeepingDigits = (text: string): unknown =>
  parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== String(value) ? rawJSON(source) : value,
  );

/** JSON as what it says, text as text, other bytes in base64. What a program calls JSON and is none is text. */
export function outputOf(bytes: Buffer, contentType: string): unknown {
  const isJson = contentType.startsWith('application/json');
  if (!isJson && !contentType.startsWith('text/')) return bytes.toString('base64');
  const text = bytes.toString('utf8');
  try {
    return isJson ? parseKeepingDigits(text) : text;
  } catch {
    return text;
  }
}

/** Throws PROGRAM_NOT_FOUND for a message that is none. */
async function findProgram({ reader }: Context, text: string): Promise<JudgedMessageView> {
  const hash = parseProgramHash(text);
  const message = await reader.getMessage(hash);
  if (message.type !== 'PROGRAM')
    throw new AppError('PROGRAM_NOT_FOUND', `${hash} is a ${message.type}, not a program`);
  return message;
}

export async function deleteProgram(context: Context, options: LossOptions, text: string): Promise<void> {
  const core = await context.openWriter();
  const { item_hash: hash } = await findProgram(context, text);
  await confirmLoss(context, options, `Delete the program ${hash}?`);
  const answer = await core.forget([hash]);
  const { item_hash: forget } = answer;
  context.output.result(
    { program_hash: hash, item_hash: forget, ...verdictFields(answer) },
    `deleted ${hash}`,
  );
}

export async function listPrograms(context: Context, options: ProgramListOptions): Promise<void> {
  const { output, reader } = context;
  const { page, limit } = options;
  const addresses = await ownerOf(context, options.address);
  const answer = await reader.listMessages({ types: 'PROGRAM', addresses, page, limit });
  const rows = answer.messages.map(({ item_hash: hash, timestamp, content }) => {
    const { name = '', runtime = '' } = (content ?? {}) as { name?: string; runtime?: string };
    return [renderTime(timestamp), plainText(runtime), plainText(name), hash];
  });
  output.result(answer, output.table(['CREATED', 'RUNTIME', 'NAME', 'HASH'], rows, 'no programs'));
  output.page(answer.pagination, 'programs');
}

export async function showProgram(context: Context, text: string): Promise<void> {
  const message = await findProgram(context, text);
  const { item_hash: hash, sender, timestamp, content, status, reason } = message;
  const { isVerified, words } = await proveShown(context.coreUrl, parseProgramHash(text), message);
  const { code: source, ...rest } = (content ?? {}) as Record<string, unknown>;
  const created = new Date(timestamp * 1000).toISOString();
  const shown = { program_hash: hash, sender, created, ...rest, status };
  const lines = Object.entries({ ...shown, signature: words }).map(
    ([name, value]) => `${name.padEnd(14)}${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  // Nothing is left of what was forgotten.
  const code = typeof source === 'string' ? source : (JSON.stringify(source) ?? '');
  context.output.result(
    { ...shown, signature_verified: isVerified, ...(reason ? { reason } : {}), code: source },
    [...lines, '', code].join('\n'),
  );
  noteVerdict(context.output, status, reason);
}
