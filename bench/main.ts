import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../tools/source.ts';
import { describeCompared, resolveCommit, runAgainst } from './against.ts';
import { runAll, runForRecord } from './all.ts';
import { BENCHES } from './benches.ts';
import { type Command, readCommand, WrongUse } from './command.ts';
import { tell } from './measure/figures.ts';
import { measureBusy } from './quiet.ts';
import { describeBenches, listBenches } from './report/list.ts';
import { fillTables } from './report/page.ts';
import { FIGURES_FILE, keyOf, PAGE_FILE, readRuns, writeRun } from './report/record.ts';
import { BenchError, endBelow, runBench } from './run.ts';

const NAMES = Object.keys(BENCHES).join(', ');
const USAGE = `npm run bench                      what benches there are, and their last figures
npm run bench -- NAME [ARGUMENTS]  runs one: ${NAMES}
npm run bench -- all [NAME ...]    runs each, or these, in turn, and keeps their figures

  --write            keep the figures in ${FIGURES_FILE} and ${PAGE_FILE}
  --against COMMIT   run it here and of that commit in turns; ratios of here to there
  --pairs N          so many runs of each (default 2)
  --busy             with all: do not wait until others leave the machine alone
  --json             only JSON on standard output; lines for people go to standard error
  -h, --help         this text`;
/** Who runs one bench sees that it hangs. */
const ALONE_LIMIT_MINUTES = 24 * 60;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    endBelow(process.pid);
    process.exit(128 + constants.signals[signal]);
  });

const printJson = (value: unknown) => console.log(JSON.stringify(value, null, 2));

function writePage(): void {
  const path = join(ROOT, PAGE_FILE);
  writeFileSync(path, fillTables(readFileSync(path, 'utf8'), readRuns()));
  tell(`wrote ${FIGURES_FILE} and ${PAGE_FILE}`);
}

function showList({ json }: Command): void {
  const runs = readRuns();
  if (json) printJson(describeBenches(runs));
  else console.log(`${listBenches(runs)}\n\n${USAGE}`);
}

function checkName(name: string): void {
  if (!Object.hasOwn(BENCHES, name)) throw new WrongUse(`there is no bench ${name}: there are ${NAMES}, all`);
}

async function runEach({ args: names, json, busy }: Command): Promise<void> {
  names.forEach(checkName);
  const { runs, failed } = await runAll({ names, output: json ? 2 : 1, goesOnBusy: busy });
  writePage();
  if (json) printJson(runs);
  if (failed.length === 0) return;
  tell(`nothing kept of: ${failed.join(', ')}`);
  process.exitCode = 1;
}

async function compare(name: string, { args, against = '', pairs, json }: Command): Promise<void> {
  const commit = resolveCommit(against);
  const compared = await runAgainst(name, { args, commit, pairs, limitMinutes: ALONE_LIMIT_MINUTES });
  if (json) return printJson({ bench: keyOf(name, args), against: commit, pairs, figures: compared });
  console.log(`\nhere to ${commit.slice(0, 10)}, ${pairs} pairs: median of ratios (lowest to highest)`);
  for (const [group, figures] of Map.groupBy(compared, (one) => one.group))
    console.log(`\n${group}\n${figures.map(describeCompared).join('\n')}`);
}

async function runOne(name: string, { args, json, write }: Command): Promise<void> {
  const options = { args, output: json ? 2 : 1, limitMinutes: ALONE_LIMIT_MINUTES } as const;
  if (!json && !write) return void (await runBench(name, options));
  const { run, lacking } = await runForRecord(name, { ...options, busy: await measureBusy() });
  if (json) printJson(run);
  if (!write) return;
  writeRun(keyOf(name, args), run, lacking);
  writePage();
}

async function main(): Promise<void> {
  const command = readCommand(process.argv.slice(2));
  const { name } = command;
  if (command.help) return console.log(USAGE);
  if (name === undefined) return showList(command);
  if (name === 'all') return await runEach(command);
  checkName(name);
  if (command.against !== undefined) return await compare(name, command);
  await runOne(name, command);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof BenchError || error instanceof WrongUse)) throw error;
  tell(error.message);
  process.exitCode = error instanceof WrongUse ? 2 : 1;
}
