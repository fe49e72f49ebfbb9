import { AppError, type InstanceView, LIMITS } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { shortId } from './render.ts';

/** What can stand on a command line as it is, and is no full id. */
const NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,${LIMITS.instanceNameChars - 2}}$`);

/** Messages may carry any text as a name; the command makes none that a person would have to quote or could confuse. */
export function checkName(name: string): void {
  if (NAME.test(name)) return;
  throw new AppError(
    'INVALID_PARAMETERS',
    `a name has up to ${LIMITS.instanceNameChars - 1} ASCII letters, digits, dots, hyphens and underscores, and starts with a letter or digit; it cannot be ${JSON.stringify(name)}`,
  );
}

/** The first of `web-2`, `web-3` and so on that no instance has. */
export function suggestName(name: string, taken: ReadonlySet<string>): string {
  const stem = name.replace(/-\d{1,4}$/, '');
  let number = 2;
  while (taken.has(`${stem}-${number}`)) number++;
  return `${stem}-${number}`;
}

/** @param instances all of one owner. Throws NAME_IN_USE: commands could not tell two of a name apart */
export function checkUnused(name: string, instances: readonly InstanceView[]): void {
  const other = instances.find((instance) => instance.name === name);
  if (other === undefined) return;
  const taken = new Set(instances.map((instance) => instance.name));
  throw new AppError('NAME_IN_USE', `you have an instance named ${name} (${shortId(other.instance_id)})`, {
    details: {
      hint: `choose another name, such as --name ${suggestName(name, taken)}`,
      instance_id: other.instance_id,
    },
  });
}

/** Before anything is signed. Two commands at the same moment can still choose the same name. */
export async function checkNewName({ reader }: Context, owner: string, name: string): Promise<void> {
  checkName(name);
  checkUnused(name, (await reader.readAllInstances({ address: owner })).instances);
}
