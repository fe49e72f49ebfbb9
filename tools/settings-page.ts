import { DAEMONS, type Daemon, describeDaemon } from './daemons.ts';

/** Where directories are that nobody moved, whoever writes the page. */
export const HOMES = {
  XDG_DATA_HOME: '~/.local/share',
  XDG_CACHE_HOME: '~/.cache',
  XDG_CONFIG_HOME: '~/.config',
};

function tableOf(daemon: Daemon): string {
  const rows = describeDaemon(daemon, HOMES).map(({ variable, value, isRequired, meaning }) => {
    const fallback = isRequired ? 'required' : value === '' ? '' : `\`${value}\``;
    return `| \`${variable}\` | ${fallback} | ${meaning.replaceAll('|', '\\|')} |`;
  });
  return `## ${daemon.name}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

/** docs/settings.md: every setting of every daemon, as its config.ts has it. */
export const describeSettings = () => `# Settings

Which settings are there, and what are they by default? Each is an environment variable. Lists are comma-separated; an empty default means none.
[operating.md](operating.md#settings) says how they are read, and [where files are](operating.md#where-files-are).

\`npm run generate\` writes this page from each daemon's \`config.ts\`.

${DAEMONS.map(tableOf).join('\n')}`;
