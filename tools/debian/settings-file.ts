import { COMMON, type Daemon, type DescribedSetting, describeDaemon, explainSetting } from '../daemons.ts';
import { homesOf, settingsOf, unitOf } from './layout.ts';

const LINE_CHARS = 100;

/** Comment lines of at most so many characters. */
function comment(text: string): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1)!;
    if (last !== '' && last.length + 1 + word.length > LINE_CHARS) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.map((line) => `# ${line}`).join('\n');
}

const entryOf = (setting: DescribedSetting) => {
  const { variable, value, isRequired } = setting;
  return `${comment(`${explainSetting(setting)}${isRequired ? ' (required)' : ''}`)}\n#${variable}=${value}\n`;
};

/** A daemon's file of settings, each with its meaning and its default, and none in force. */
export function renderSettings(daemon: Daemon): string {
  const { name } = daemon;
  const unit = unitOf(name);
  const how = name === 'gateway' ? 'reload' : 'restart';
  const head = [
    `Settings of ${unit}: ${daemon.summary}.`,
    `They count from the next start: systemctl ${how} ${unit.replace('.service', '')}`,
    'Each is shown with its default; an empty one is none. Remove the # to set it. Lists are comma-separated.',
    'A line is NAME=value, without "export" and without other variables in the value (systemd.exec(5), EnvironmentFile=).',
    'Upgrades of the package keep your changes. An unknown name is an error, so that a typo does not go unnoticed.',
  ];
  const entries = [...describeDaemon(daemon, homesOf(name)), ...COMMON].map(entryOf);
  return `${head.map(comment).join('\n')}\n\n${entries.join('\n')}`;
}

/** Only root and the service manager read it: it may hold secrets. */
export const settingsFileOf = (daemon: Daemon) => ({
  path: settingsOf(daemon.name),
  text: renderSettings(daemon),
  mode: 0o640,
});
