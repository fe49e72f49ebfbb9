import { computeService } from '@skerry/compute';
import { coreService } from '@skerry/core';
import { ipfsPeerService } from '@skerry/core/ipfs-peer';
import { creditService } from '@skerry/credit';
import { gatewayService } from '@skerry/gateway';
import { type ConfigSpec, type Setting, settingText, variableName } from '@skerry/kit';
import { monitorService } from '@skerry/monitor';
import { schedulerService } from '@skerry/scheduler';
import { statusService } from '@skerry/status';

interface Daemon {
  readonly name: string;
  readonly config: { readonly prefix: string; readonly settings: ConfigSpec<unknown>['settings'] };
}

/** In the order in which a network needs them. */
const DAEMONS: readonly Daemon[] = [
  coreService,
  schedulerService,
  computeService,
  gatewayService,
  monitorService,
  creditService,
  statusService,
  ipfsPeerService,
];

/** Where directories are that nobody moved, whoever writes the page. */
const HOMES = { XDG_DATA_HOME: '~/.local/share', XDG_CACHE_HOME: '~/.cache', XDG_CONFIG_HOME: '~/.config' };

function defaultOf({ fallback, required }: Setting<unknown>): string {
  if (required) return 'required';
  const value = typeof fallback === 'function' ? fallback(HOMES) : fallback;
  const text = settingText(value);
  return text === '' ? '' : `\`${text}\``;
}

function tableOf({ name, config }: Daemon): string {
  const rows = Object.entries<Setting<unknown>>(config.settings).map(
    ([key, setting]) =>
      `| \`${variableName(config.prefix, key)}\` | ${defaultOf(setting)} | ${setting.describe.replaceAll('|', '\\|')} |`,
  );
  return `## ${name}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

/** docs/settings.md: every setting of every daemon, as its config.ts has it. */
export const describeSettings = () => `# Settings

Which settings are there, and what are they by default? Each is an environment variable. Lists are comma-separated; an empty default means none.
[operating.md](operating.md#settings) says how they are read, and [where files are](operating.md#where-files-are).

\`npm run generate\` writes this page from each daemon's \`config.ts\`.

${DAEMONS.map(tableOf).join('\n')}`;
