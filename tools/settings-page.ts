import { COMMON, DAEMONS, type DescribedSetting, describeDaemon } from './daemons.ts';

/** Where directories are that nobody moved, whoever writes the page. */
export const HOMES = {
  XDG_DATA_HOME: '~/.local/share',
  XDG_CACHE_HOME: '~/.cache',
  XDG_CONFIG_HOME: '~/.config',
};

const cell = (text: string) => text.replaceAll('|', '\\|');
const code = (text: string) => (text === '' ? '' : `\`${cell(text)}\``);

function rowOf({ variable, value, isRequired, meaning, allowed = '', alias }: DescribedSetting): string {
  const names = [variable, ...(alias === undefined ? [] : [alias])].map(code).join(', also ');
  return `| ${names} | ${isRequired ? 'required' : code(value)} | ${cell(allowed)} | ${cell(meaning)} |`;
}

function tableOf(name: string, rows: readonly DescribedSetting[], intro = ''): string {
  const head = '| variable | default | allowed | meaning |\n|---|---|---|---|';
  return `## ${name}\n\n${intro}${head}\n${rows.map(rowOf).join('\n')}\n`;
}

const HOMES_TEXT = `These too, which say [where files are](operating.md#where-files-are): \`SKERRY_HOME\`, \`SKERRY_CACHE\`, \`XDG_DATA_HOME\`, \`XDG_CACHE_HOME\`, \`XDG_CONFIG_HOME\`.

`;

/** What a settings file shows as an example is no default. */
const common = COMMON.map((one) => (one.variable === 'NODE_OPTIONS' ? { ...one, value: '' } : one));

/** docs/settings.md: every setting of every daemon, as its config.ts has it. */
export const describeSettings = () => `# Settings

Which settings are there, what may they be, and what are they by default? Each is an environment variable. Lists are comma-separated; an empty default means none.
[operating.md](operating.md#settings) says how they are read. A value that is not allowed keeps the daemon from starting. The command's own variables, such as \`SKERRY_CORE_URL\`, are in [command-line.md](command-line.md#networks).

\`npm run generate\` writes this page from each daemon's \`config.ts\`.

${tableOf('every daemon', common, HOMES_TEXT)}
${DAEMONS.map((daemon) => tableOf(daemon.name, describeDaemon(daemon, HOMES))).join('\n')}`;
