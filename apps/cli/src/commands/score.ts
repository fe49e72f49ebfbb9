import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import { parsePositive } from '../options.ts';
import type { ComputeOptions, ReleaseOptions, ScoreOptions } from '../scores/actions.ts';

/** Three hours: what is published should tell of now. */
const MAX_AGE_SECONDS = 10_800;

const withInputs = (command: Command) =>
  command
    .requiredOption('--publisher <list>', 'addresses whose measurements count, comma-separated')
    .option('--from <time>', 'Unix seconds or ISO 8601, inclusive; two years before the end if left out')
    .option('--to <time>', 'the end, exclusive; now if left out')
    .option('--versions <address>', 'whose version table counts; the first publisher if left out')
    .option('--node-list <address>', 'whose node list says who registered first')
    .option('--settings <json>', 'settings that differ from the usual: JSON, @FILE, or -');

/** Scores of nodes: computed from public messages by anybody (docs/scoring.md). */
export function addScoreCommands(program: Command, bind: Bind): void {
  const score = program.command('score').description('scores of nodes: compute, verify, explain');

  withInputs(score.command('compute'))
    .description('scores of all nodes, from the metrics messages of a core node')
    .option('--publish', 'sign the scores and publish them, with their inputs')
    .option('--tags <list>', 'tags of what is published')
    .option(
      '--max-age <seconds>',
      'how old the newest measurements may be to publish',
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
        (await import('../scores/actions.ts')).computeAndShow(context, options),
      ),
    );

  score
    .command('latest')
    .description('the newest scores that were published, as they were published')
    .option('--publisher <address>', 'only those of this address')
    .addHelpText('after', examples('skerry score latest', 'skerry score latest --publisher ADDRESS --json'))
    .action(
      bind<{ publisher?: string }>(async (context, options) =>
        (await import('../scores/latest.ts')).showLatest(context, options.publisher),
      ),
    );

  score
    .command('verify')
    .description('compute published scores again and compare; exit code 1 if they differ')
    .argument('<hash>', 'item hash of the scores')
    .addHelpText('after', examples('skerry score verify HASH', 'skerry score verify HASH --core URL'))
    .action(
      bind(async (context, _options, [hash]) =>
        (await import('../scores/actions.ts')).verifyAndShow(context, hash!),
      ),
    );

  withInputs(score.command('explain'))
    .description('what cost a node points, hour by hour')
    .argument('<node>', 'node id')
    .addHelpText('after', examples('skerry score explain NODE --publisher ADDRESS'))
    .action(
      bind<ScoreOptions>(async (context, options, [node]) =>
        (await import('../scores/actions.ts')).explainAndShow(context, node!, options),
      ),
    );

  score
    .command('release')
    .description('publish a release in the version table of your key')
    .argument('<software>', 'skerry-core or skerry-compute')
    .argument('<version>')
    .option('--on <date>', 'day of the release, YYYY-MM-DD of UTC; today if left out')
    .option('--prerelease', 'it replaces no other')
    .addHelpText('after', examples('skerry score release skerry-core 1.2.0 --on 2026-03-01 --key scoring'))
    .action(
      bind<ReleaseOptions>(async (context, options, [software, version]) =>
        (await import('../scores/actions.ts')).publishRelease(context, software!, version!, options),
      ),
    );
}
