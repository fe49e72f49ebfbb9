import { resolve } from 'node:path';
import { createKeyFile } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import { confirm } from '../confirm.ts';
import type { Context } from '../context.ts';
import { readTextFile } from '../files/read-text.ts';
import { renderFields } from '../output/text.ts';
import * as store from './key-store.ts';

export interface KeyNewOptions {
  readonly name?: string;
  readonly force?: boolean;
}

function tell({ output }: Context, { name, address, path }: store.KeyInfo): void {
  output.result(
    { name, address, path },
    renderFields([
      ['name', name],
      ['address', address],
      ['file', path],
    ]),
  );
}

export async function newKey(context: Context, options: KeyNewOptions): Promise<void> {
  const name = options.name ?? context.keyName;
  tell(context, await store.createKey(context.paths.config, name, options.force === true));
}

/** A key file holds 67 bytes; what is much larger is something else. */
const KEY_BYTES_MAX = 256;
const looksLikeKey = (text: string) => /^(?:0x)?[0-9a-fA-F]{64}$/.test(text);
const tooLarge = () =>
  new AppError('INVALID_PARAMETERS', `a private key file has at most ${KEY_BYTES_MAX} bytes`);

async function readStdin(stdin: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const chunk of stdin) {
    text += chunk;
    if (text.length > KEY_BYTES_MAX) throw tooLarge();
  }
  return text;
}

/** @param source a file, or `-` for standard input: what stands on a command line can be read by others */
export async function importKey(context: Context, source: string, options: KeyNewOptions): Promise<void> {
  if (looksLikeKey(source))
    throw new AppError(
      'INVALID_PARAMETERS',
      'do not put a private key on the command line, where other users can see it: give a file, or - for standard input',
    );
  const text =
    source === '-' ? await readStdin(context.stdin) : await readTextFile(source, KEY_BYTES_MAX, tooLarge);
  const name = options.name ?? context.keyName;
  tell(context, await store.importKey(context.paths.config, name, text, options.force === true));
}

export interface KeyExportOptions {
  readonly output: string;
  readonly yes?: boolean;
}

/** Whoever has a private key can do what its owner can, so that nothing is written before the person agrees. */
export async function exportKey(context: Context, options: KeyExportOptions): Promise<void> {
  const { output, paths, keyName } = context;
  const { privateKey, ...info } = await store.loadKey(paths.config, keyName);
  const isStdout = options.output === '-';
  if (!options.yes) {
    const where = isStdout ? 'print it here' : `write it to ${options.output}`;
    await confirm(
      context,
      `Whoever has the private key of ${info.address} can sign as you and spend your credit. ${isStdout ? 'Print' : 'Write'} it?`,
      { unattended: `use --yes to ${where} without confirmation`, refused: 'nothing was exported' },
    );
  }
  if (isStdout) {
    const { name, address } = info;
    output.result({ name, address, private_key: privateKey }, privateKey);
    return;
  }
  const path = resolve(options.output);
  if (!(await createKeyFile(path, privateKey)))
    throw new AppError('KEY_EXISTS', `${path} exists; an export never replaces a file`);
  tell(context, { ...info, path });
  output.note('keep this file as safe as the key: nobody can take a key back that others have seen');
}

export async function showKey(context: Context): Promise<void> {
  tell(context, await store.loadKey(context.paths.config, context.keyName));
}

export async function listKeys({ paths, output }: Context): Promise<void> {
  const { keys, unusable } = await store.listKeys(paths.config);
  const rows = keys.map(({ name, address }) => [name, address]);
  output.result(keys, output.table(['NAME', 'ADDRESS'], rows, 'no key yet: run "skerry key new"'));
  for (const { name, error } of unusable) output.note(`the key ${name} cannot be used: ${error.message}`);
}
