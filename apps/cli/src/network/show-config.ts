import { listEffective, settingText, variablesOf } from '@skerry/kit';
import { describeNode } from '../backup/role.ts';
import type { Context } from '../context.ts';
import { readUnitEnvironment } from '../joining/units.ts';
import { type DaemonOptions, loadService } from './daemon.ts';
import type { DaemonName } from './daemon-names.ts';
import { withSettings } from './settings-file.ts';

/** What a daemon starts with on this machine: its settings file, above what its unit sets and under what the environment says. */
export async function showConfig(
  context: Context,
  name: DaemonName,
  { settings: file }: DaemonOptions,
): Promise<void> {
  const { config: spec } = await loadService(name);
  // A name that is mistyped in a file that is named here keeps the daemon from starting.
  await withSettings(context.environment, file, variablesOf(spec));
  // A file that is named may be of a daemon that is started by hand.
  const options = file === undefined ? { beneath: await readUnitEnvironment(name) } : { settings: file };
  const { config } = await describeNode(context, name, options);
  const settings = listEffective(spec, config);
  const lines = settings.map(({ variable, value, describe }) => {
    return `# ${describe}\n${variable}=${settingText(value)}`;
  });
  context.output.result(settings, lines.join('\n'));
}
