import type { CoreClient } from '@skerry/client';
import {
  AppError,
  convertNetworkContent,
  isItemHash64,
  itemHashOf,
  LIMITS,
  type MessageView,
  ownerOf,
  type Program,
  parseProgramContent,
  programOf,
  type RuntimeName,
  scanJsonObject,
  sha256Hex,
} from '@skerry/protocol';

/** A PROGRAM message, read: nothing in it rests on the word of the core node that handed it out. */
export interface ReadProgram {
  readonly owner: string;
  readonly program: Program;
}

/** What the core node answers for one message, as far as it is looked at. */
export type MessageAnswer = MessageView & {
  readonly status: string;
  readonly reason?: { readonly message: string } | null;
  readonly message?: { readonly item_type: string; readonly item_content: string | null };
};

const mismatch = (hash: string) =>
  new AppError('HASH_MISMATCH', `the core node sent the wrong bytes for ${hash}`);

/** The signed content of a message, once it is known to have the hash that was asked for. */
function contentOf(hash: string, answer: MessageAnswer): { content: unknown; isNetworkForm: boolean } {
  const { chain, sender, signed_text: text, message } = answer;
  if (text !== null && itemHashOf(chain, sender, text) === hash)
    return {
      content: (scanJsonObject(Buffer.from(text)).value as { content?: unknown }).content,
      isNetworkForm: false,
    };
  const inner = message?.item_content ?? null;
  if (inner === null || sha256Hex(inner) !== hash) throw mismatch(hash);
  return { content: JSON.parse(inner) as unknown, isNetworkForm: true };
}

/** @throws AppError PROGRAM_NOT_FOUND, MESSAGE_FORGOTTEN, HASH_MISMATCH, PROGRAM_UNSUPPORTED */
export function readProgram(hash: string, answer: MessageAnswer): ReadProgram {
  if (answer.type !== 'PROGRAM')
    throw new AppError('PROGRAM_NOT_FOUND', `${hash} is a ${answer.type}, not a PROGRAM`);
  if (answer.status === 'forgotten')
    throw new AppError('MESSAGE_FORGOTTEN', `the program ${hash} was forgotten`);
  if (answer.status !== 'processed') {
    const why = answer.reason ? `: ${answer.reason.message}` : '';
    throw new AppError('PROGRAM_NOT_FOUND', `the program ${hash} is ${answer.status}${why}`);
  }
  if (answer.message && answer.message.item_type !== 'inline')
    throw new AppError(
      'PROGRAM_UNSUPPORTED',
      'the content of the program is a separate file; only inline contents can run',
    );
  const { content, isNetworkForm } = contentOf(hash, answer);
  const owner = ownerOf(answer.sender, (content ?? {}) as { address?: unknown });
  if (!isNetworkForm) return { owner, program: programOf(parseProgramContent(content)) };
  const converted = convertNetworkContent('PROGRAM', hash, content);
  return { owner, program: converted.content as Program };
}

/** Reads one message, or undefined where the core node knows none. */
export async function findMessage(core: CoreClient, hash: string): Promise<MessageAnswer | undefined> {
  try {
    return (await core.getMessage(hash)) as MessageAnswer;
  } catch (error) {
    if (error instanceof AppError && error.code === 'MESSAGE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The file that a STORE message keeps, from what its sender signed. */
function fileOf(hash: string, answer: MessageAnswer): unknown {
  const { chain, sender, signed_text: text } = answer;
  // Who uploads a file signs nothing but its hash.
  if (text !== null && isItemHash64(text) && itemHashOf(chain, sender, text) === hash) return text;
  return (contentOf(hash, answer).content as { item_hash?: unknown } | null)?.item_hash;
}

/**
 * The SHA-256 of the file that a program's code is: a program names the file, or the STORE message that keeps it.
 *
 * @throws AppError HASH_MISMATCH, PROGRAM_UNSUPPORTED for a CID
 */
export async function resolveFile(core: CoreClient, ref: string): Promise<string> {
  const answer = isItemHash64(ref) ? await findMessage(core, ref) : undefined;
  const file = answer?.type === 'STORE' ? fileOf(ref, answer) : ref;
  if (typeof file !== 'string' || !isItemHash64(file))
    throw new AppError(
      'PROGRAM_UNSUPPORTED',
      'the code is named by a CID; only files named by SHA-256 can run',
    );
  return file;
}

/** Runtimes of deployed nodes that a runtime here can stand in for: Debian 12 with Python. */
const KNOWN_IMAGES: Readonly<Record<string, RuntimeName>> = {
  '63f07193e6ee9d207b7d1fcf8286f9aee34e6f12f101d2ec77c1229f92964696': 'python3',
};

/** @throws AppError PROGRAM_UNSUPPORTED */
export function runtimeOf({ runtime }: Program): RuntimeName {
  if (runtime.kind === 'named') return runtime.runtime;
  const known = KNOWN_IMAGES[runtime.ref];
  if (!known)
    throw new AppError(
      'PROGRAM_UNSUPPORTED',
      'the program requires a disk image as its runtime; programs run with nodejs, python3 or wasm',
    );
  return known;
}

const ZIP_SIGNATURE = 'PK\u0003\u0004';
const SQUASHFS_SIGNATURE = 'hsqs';

/** How code is packed: what the message says, else what its bytes are. Throws PROGRAM_UNSUPPORTED. */
export function encodingOf(program: Program, bytes: Buffer): 'plain' | 'zip' {
  const said = program.code.kind === 'file' ? program.code.encoding : 'plain';
  const start = bytes.toString('latin1', 0, 4);
  const encoding =
    said ?? (start === ZIP_SIGNATURE ? 'zip' : start === SQUASHFS_SIGNATURE ? 'squashfs' : 'plain');
  if (encoding === 'squashfs')
    throw new AppError('PROGRAM_UNSUPPORTED', 'the code is packed with squashfs; pack it with zip');
  return encoding;
}

/** More than a message may ask for here is cut to what a sandbox can have. */
export const memoryOf = ({ memoryMib }: Program) => Math.max(LIMITS.programMemoryMibMin, memoryMib);
