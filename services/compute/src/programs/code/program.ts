import {
  AppError,
  convertNetworkContent,
  fieldsOf,
  LIMITS,
  NETWORK_PARSERS,
  type NetworkVolume,
  ownerOf,
  type Program,
  parseProgramContent,
  programOf,
  type RuntimeName,
} from '@skerry/protocol';
import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import { type MessageSource, readContent } from '../../files/message.ts';
import { hasUnsquashfs } from '../sandbox/runtimes.ts';
import type { SandboxCode } from '../sandbox/sandbox.ts';

/** A PROGRAM message, read: nothing in it rests on the word of the core node that handed it out. */
export interface ReadProgram {
  readonly owner: string;
  readonly program: Program;
  readonly volumes: readonly NetworkVolume[];
}

/** @throws AppError PROGRAM_NOT_FOUND, MESSAGE_FORGOTTEN, HASH_MISMATCH, PROGRAM_UNSUPPORTED */
export async function readProgram(
  core: MessageSource,
  hash: string,
  answer: JudgedMessageView,
): Promise<ReadProgram> {
  if (answer.type !== 'PROGRAM')
    throw new AppError('PROGRAM_NOT_FOUND', `${hash} is a ${answer.type}, not a PROGRAM`);
  if (answer.status === 'forgotten')
    throw new AppError('MESSAGE_FORGOTTEN', `the program ${hash} was forgotten`);
  if (answer.status !== 'processed') {
    const why = answer.reason ? `: ${answer.reason.message}` : '';
    throw new AppError('PROGRAM_NOT_FOUND', `the program ${hash} is ${answer.status}${why}`);
  }
  const { content, isNetworkForm } = await readContent(core, hash, answer);
  const owner = ownerOf(answer.sender, fieldsOf(content));
  if (!isNetworkForm) return { owner, program: programOf(parseProgramContent(content)), volumes: [] };
  const converted = convertNetworkContent('PROGRAM', hash, content);
  const { volumes } = NETWORK_PARSERS.PROGRAM(content);
  return { owner, program: converted.content as Program, volumes: volumes ?? [] };
}

/** Which runtimes stand in for the disk images that programs name. */
export type RuntimeTable = Readonly<Record<string, RuntimeName>>;

/** @throws AppError PROGRAM_UNSUPPORTED */
export function runtimeOf(image: string, table: RuntimeTable): RuntimeName {
  const known = table[image];
  if (!known)
    throw new AppError(
      'PROGRAM_UNSUPPORTED',
      `the program's runtime is the image ${image}, for which this node has none (SKERRY_COMPUTE_PROGRAM_RUNTIMES)`,
    );
  return known;
}

const ZIP_SIGNATURE = 'PK\u0003\u0004';
const SQUASHFS_SIGNATURE = 'hsqs';

/** How code is packed: what the message says, else what its bytes are. Throws PROGRAM_UNSUPPORTED. */
export function encodingOf(program: Program, runtime: RuntimeName, bytes: Buffer): SandboxCode['encoding'] {
  const said = program.code.kind === 'file' ? program.code.encoding : 'plain';
  const start = bytes.toString('latin1', 0, 4);
  const encoding =
    said ?? (start === ZIP_SIGNATURE ? 'zip' : start === SQUASHFS_SIGNATURE ? 'squashfs' : 'plain');
  if (encoding !== 'squashfs') return encoding;
  if (runtime !== 'python3')
    throw new AppError('PROGRAM_UNSUPPORTED', `code for ${runtime} cannot be squashfs; pack it with zip`);
  if (!hasUnsquashfs())
    throw new AppError('PROGRAM_UNSUPPORTED', 'this node lacks unsquashfs (Debian package squashfs-tools)');
  return encoding;
}

/** More than a message may ask for here is cut to what a sandbox can have. */
export const memoryOf = ({ memoryMib }: Program) => Math.max(LIMITS.programMemoryMibMin, memoryMib);
