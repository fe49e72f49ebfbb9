import type { Context } from '../context.ts';
import { renderFields, renderTable } from '../output/text.ts';
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

export async function showKey(context: Context): Promise<void> {
  tell(context, await store.loadKey(context.paths.config, context.keyName));
}

export async function listKeys({ paths, output }: Context): Promise<void> {
  const keys = await store.listKeys(paths.config);
  if (keys.length === 0) output.note('no key yet: run "skerry key new"');
  output.result(
    keys,
    renderTable(
      ['NAME', 'ADDRESS'],
      keys.map(({ name, address }) => [name, address]),
    ),
  );
}
