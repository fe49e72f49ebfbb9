import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { VERSION } from '@skerry/kit';
import { renderCompletion, SHELLS } from '../../apps/cli/src/completion/scripts.ts';
import { listPlaces } from '../../apps/cli/src/completion/tree.ts';
import { createProgram } from '../../apps/cli/src/program.ts';
import { DAEMONS, describeDaemon, explainSetting } from '../daemons.ts';
import { HOMES } from '../settings-page.ts';
import type { ManualSetting } from './describe.ts';
import { type ManualPage, renderManual } from './roff.ts';

/** What a package brings to a shell and to man(1), made from the commands and from the daemons' settings. */

const { stdin, stdout, stderr } = process;
export const readProgram = () => createProgram({ environment: {}, stdin, stdout, stderr }, () => {});

/** The command that runs a daemon, where it is not its name. */
const COMMAND_OF: Readonly<Record<string, string>> = { status: 'status serve' };

export function settingsOf(path: string): ManualSetting[] {
  const daemon = DAEMONS.find(({ name }) => path === `skerry ${COMMAND_OF[name] ?? name}`);
  if (daemon === undefined) return [];
  return describeDaemon(daemon, HOMES).map((setting) => ({
    variable: setting.variable,
    describe: explainSetting(setting),
    fallback: setting.isRequired ? 'required' : setting.value,
  }));
}

export const listManualPages = (): ManualPage[] => renderManual(readProgram(), VERSION, settingsOf);

const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/skerry',
  zsh: 'usr/share/zsh/vendor-completions/_skerry',
  fish: 'usr/share/fish/vendor_completions.d/skerry.fish',
} as const;

/** Manual pages and completions below the root of a system, where Debian has them. */
export function writeForShells(root: string): void {
  const write = (path: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const { file, text } of listManualPages())
    write(`usr/share/man/man1/${file}.gz`, gzipSync(text, { level: 9 }));
  const places = listPlaces(readProgram());
  for (const shell of SHELLS) write(COMPLETIONS[shell], renderCompletion(shell, places));
}
