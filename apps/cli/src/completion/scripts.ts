import { BASH, FISH, ZSH } from './shells.ts';
import type { CompletedOption, Place } from './tree.ts';

/**
 * What a shell runs to complete "skerry". Commands and options are written into it, so that the shell answers at once; only
 * names of keys, networks and instances are asked for.
 */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** In single quotes, for bash, zsh and fish alike: none of our texts needs a quote inside. */
const quote = (text: string) => `'${text.replaceAll('\\', '').replaceAll("'", '’')}'`;

const flagsOf = (options: readonly CompletedOption[]) => options.flatMap(({ flags }) => flags);

/** `path option` and `path` with what their values are, where there are any. */
function valueRows(places: readonly Place[]): (readonly [string, string])[] {
  return places.flatMap(({ path, options, values }) => [
    ...(values === undefined ? [] : [[path, values] as const]),
    ...options.flatMap((option) =>
      option.values === undefined
        ? []
        : option.flags.map((flag) => [`${path} ${flag}`, option.values!] as const),
    ),
  ]);
}

type Rows = readonly (readonly [string, string])[];

/** Associative arrays, as bash and as zsh have them. */
const bashArray = (name: string, rows: Rows) =>
  `${name}=(\n${rows.map(([key, value]) => `  [${quote(key)}]=${quote(value)}`).join('\n')}\n)`;
const zshArray = (name: string, rows: Rows) =>
  `${name}=(\n${rows.map(([key, value]) => `  ${quote(key)} ${quote(value)}`).join('\n')}\n)`;

function renderBash(places: readonly Place[]): string {
  const commands = places.map(
    ({ path, commands }) => [path, commands.map(({ name }) => name).join(' ')] as const,
  );
  const options = places.map(({ path, options }) => [path, flagsOf(options).join(' ')] as const);
  return [
    '# Completion of the skerry command for bash; made by "skerry completion bash"',
    'declare -A _skerry_commands _skerry_options _skerry_values',
    bashArray('_skerry_commands', commands),
    bashArray('_skerry_options', options),
    bashArray('_skerry_values', valueRows(places)),
    BASH,
  ].join('\n');
}

const DESCRIBED = (name: string, description: string) =>
  `${name.replaceAll(':', '\\:')}:${description.replaceAll(/\s+/g, ' ')}`;

function renderZsh(places: readonly Place[]): string {
  const lines = (described: readonly (readonly [string, string])[]) =>
    described.map(([name, description]) => DESCRIBED(name, description)).join('\n');
  const commands = places.map(
    ({ path, commands }) => [path, lines(commands.map((one) => [one.name, one.description]))] as const,
  );
  const options = places.map(
    ({ path, options }) =>
      [
        path,
        lines(options.flatMap(({ flags, description }) => flags.map((flag) => [flag, description] as const))),
      ] as const,
  );
  return [
    '#compdef skerry',
    '# Completion of the skerry command for zsh; made by "skerry completion zsh"',
    'typeset -gA _skerry_commands _skerry_options _skerry_values',
    zshArray('_skerry_commands', commands),
    zshArray('_skerry_options', options),
    zshArray('_skerry_values', valueRows(places)),
    ZSH,
  ].join('\n');
}

const FISH_VALUES: Readonly<Record<string, string>> = {
  files: '-r -F',
  words: '-x',
};

const fishValues = (values: string) =>
  FISH_VALUES[values] ?? `-x -a '(skerry completion values ${values} 2>/dev/null)'`;

function renderFishOption(path: string, { flags, description, values }: CompletedOption): string {
  const at = path === 'skerry' ? '' : ` -n '__skerry_at "${path}"'`;
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const value = values === undefined ? '' : ` ${fishValues(values)}`;
  return `complete -c skerry${at} ${names.join(' ')}${value} -d ${quote(description)}`;
}

function renderFish(places: readonly Place[]): string {
  const taking = valueRows(places)
    .map(([key]) => key)
    .filter((key) => / -[^ ]+$/.test(key));
  const lines = places.flatMap(({ path, commands, options, values }) => [
    ...commands.map(
      ({ name, description }) =>
        `complete -c skerry -n '__skerry_at "${path}"' -f -a ${quote(name)} -d ${quote(description)}`,
    ),
    ...options.map((option) => renderFishOption(path, option)),
    ...(values === undefined
      ? []
      : values === 'files'
        ? [`complete -c skerry -n '__skerry_at "${path}"' -F`]
        : values === 'words'
          ? []
          : [`complete -c skerry -n '__skerry_at "${path}"' ${fishValues(values).replace('-x', '-f')}`]),
  ]);
  return [
    '# Completion of the skerry command for fish; made by "skerry completion fish"',
    `set -g __skerry_paths ${places.map(({ path }) => quote(path)).join(' ')}`,
    `set -g __skerry_taking ${taking.map(quote).join(' ')}`,
    FISH,
    ...lines,
    '',
  ].join('\n');
}

const RENDER: Readonly<Record<Shell, (places: readonly Place[]) => string>> = {
  bash: renderBash,
  zsh: renderZsh,
  fish: renderFish,
};

export const renderCompletion = (shell: Shell, places: readonly Place[]): string => RENDER[shell](places);
