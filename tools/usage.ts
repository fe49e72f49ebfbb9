import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Whoever asks for help gets it and nothing else; whoever mistypes an option reads what is wrong and what there is. */
export function parseCommand<T extends ParseArgsConfig>(usage: string, config: T) {
  if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(`${(error as Error).message.split('. ')[0]}\n\n${usage}`);
    process.exit(2);
  }
}
