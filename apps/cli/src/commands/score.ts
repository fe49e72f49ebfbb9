import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parsePositive } from '../options.ts';
import type { ComputeOptions, ReleaseOptions, ScoreOptions } from '../scores/compute.ts';

/** Three hours: what is published should tell of now. */
const MAX_AGE_SECONDS = 10_800;

const withInputs = (command: Command) =>
  command
    .option(
      '--publisher <list>',
      'addresses whose measurements to use, comma-separated (default: those that the core node trusts)',
    )
    .option('--from <time>', 'start, inclusive: Unix seconds or ISO 8601 (default: two years before the end)')
    .option('--to <time>', 'end, exclusive (default: now)')
    .option('--versions <address>', 'address whose version table to use (default: the first publisher)')
    .option('--node-list <address>', 'address whose node list says who registered first')
    .option('--settings <json>', 'settings that differ from the defaults: JSON, @FILE, or -');

/** Scores of nodes: computed from public messages by anybody (docs/scoring.md). */
export function addScoreCommands(program: Command, bind: Bind): void {
  const score = program.command('score').description('compute, verify and explain node scores');

  addCompute(score, bind);
  addPublished(score, bind);
  addExplain(score, bind);
  addRelease(score, bind);
}

function addCompute(score: Command, bind: Bind): void {
  withInputs(score.command('compute'))
    .description("compute the scores of all nodes from a core node's metrics messages")
    .option('--publish', 'sign and publish the scores with their inputs')
    .option('--tags <list>', 'tags for the published message')
    .option(
      '--max-age <seconds>',
      'oldest allowed age of the newest measurements when publishing',
      parsePositive,
      MAX_AGE_SECONDS,
    )
    .addHelpText(
      'after',
      examples(
        'skerry score compute --publisher ADDRESS --from 2026-01-01 --to 2026-02-01',
        'skerry score compute --publisher ADDRESS --publish --key scoring',
      ),
    )
    .action(
      bind<ComputeOptions>(async (context, options) =>
        (await import('../scores/compute.ts')).computeAndShow(context, options),
      ),
    );
}

/** What is asked of scores that somebody published. */
function addPublished(score: Command, bind: Bind): void {
  score
    .command('latest')
    .description('show the newest of what each publisher published last; what is in another form is named')
    .option(
      '--publisher <list>',
      'addresses whose scores to show, comma-separated (default: those that the core node trusts)',
    )
    .addHelpText('after', examples('skerry score latest', 'skerry score latest --publisher ADDRESS --json'))
    .action(
      bind<{ publisher?: string }>(async (context, options) =>
        (await import('../scores/latest.ts')).showLatest(context, options.publisher),
      ),
    );

  score
    .command('verify')
    .description('recompute published scores and compare; exit code 1 if they differ')
    .argument('<hash>', 'item hash of the scores')
    .addHelpText('after', examples('skerry score verify HASH', 'skerry score verify HASH --core URL'))
    .action(
      bind(async (context, _options, [hash]) =>
        (await import('../scores/compute.ts')).verifyAndShow(context, hash!),
      ),
    );
}

function addExplain(score: Command, bind: Bind): void {
  withInputs(score.command('explain'))
    .description('show what cost a node points, hour by hour')
    .argument('<node>', 'node id, or the start of one')
    .addHelpText(
      'after',
      examples('skerry score explain 1f2e3d4c5b6a', 'skerry score explain NODE --publisher ADDRESS'),
    )
    .action(
      bind<ScoreOptions>(async (context, options, [node]) =>
        (await import('../scores/compute.ts')).explainAndShow(context, node!, options),
      ),
    );
}

function addRelease(score: Command, bind: Bind): void {
  score
    .command('release')
    .description('add a release to the version table of your key')
    .argument('<software>', 'skerry-core or skerry-compute')
    .argument('<version>', 'as nodes announce it, for example 1.2.0')
    .option('--on <date>', 'release day, YYYY-MM-DD in UTC (default: today)')
    .option('--prerelease', 'it does not replace another version')
    .addHelpText('after', examples('skerry score release skerry-core 1.2.0 --on 2026-03-01 --key scoring'))
    .action(
      bind<ReleaseOptions>(async (context, options, [software, version]) =>
        (await import('../scores/compute.ts')).publishRelease(context, software!, version!, options),
      ),
    );
}
