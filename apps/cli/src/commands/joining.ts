import { type Command, Option } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { DoctorOptions } from '../doctor/doctor.ts';
import type { LeaveOptions } from '../joining/drains.ts';
import type { JoinOptions } from '../joining/join.ts';
import type { Role } from '../joining/roles.ts';
import { parseHttpUrl, parseOneOf, parseWaitMs, YES_OPTION } from '../options.ts';

const ROLES: readonly Role[] = ['compute', 'gateway', 'core', 'monitor'];

const parseRole = parseOneOf(ROLES);

/** What an operator says of a node; the same words before it joins and when it does. */
const addAnswers = (command: Command) =>
  command
    .option('--announce-url <url>', 'where others reach the node (compute, core)', parseHttpUrl)
    .option('--prefix <prefix>', 'the IPv6 /64 that is routed to this server (compute)')
    .option('--domain <domain>', 'the domain whose wildcard record leads here (gateway)')
    .option(
      '--settings <file>',
      "file of the daemon's settings (default: /etc/skerry/ROLE.env, or your configuration directory)",
    );

const JOIN_MS = 600_000;
/** Machines that move take their time. */
const LEAVE_MS = 1_800_000;

/** From an empty server to a member of a network, and back. */
export function addJoiningCommands(program: Command, bind: Bind): void {
  addDoctor(program, bind);
  addJoin(program, bind);
  addLeave(program, bind);
}

function addDoctor(program: Command, bind: Bind): void {
  addAnswers(
    program
      .command('doctor')
      .description('look at this server for what a role needs; exit code 1 if something is missing')
      .option(
        '--role <role>',
        `${ROLES.join(', ')}; several times for several (default: those with settings here, or compute)`,
        (text: string, before: Role[] | undefined) => [...(before ?? []), parseRole(text)],
      ),
  )
    .addHelpText(
      'after',
      examples(
        'skerry doctor --role compute --core https://core.example.org --announce-url http://203.0.113.9:4020',
        'skerry doctor --role gateway --domain apps.example.org',
        'skerry doctor --json',
      ),
    )
    .action(
      bind<DoctorOptions>(async (context, options) =>
        (await import('../doctor/doctor.ts')).runDoctor(context, options),
      ),
    );
}

function addJoin(program: Command, bind: Bind): void {
  addAnswers(
    program
      .command('join')
      .description(
        'make this server a member of a network: look at it, write settings, start the daemon, wait until it counts',
      )
      .argument('<url>', 'a core node of the network', parseHttpUrl)
      .option('--role <role>', `${ROLES.join(', ')}; asked for on a terminal`, parseRole),
  )
    .option(
      '--scheduler <url>',
      'the scheduler that should use the node (default: where the network says)',
      parseHttpUrl,
    )
    .addOption(
      new Option('--timeout <duration>', 'how long to wait until the network counts the node')
        .argParser(parseWaitMs)
        .default(JOIN_MS, '10m'),
    )
    .option('--foreground', 'run the daemon here, until Ctrl-C, and not as a systemd unit')
    .option('--dry-run', 'say what would be done, and change nothing')
    .option('--force', 'join although something is missing')
    .option(...YES_OPTION)
    .addHelpText(
      'after',
      examples(
        'skerry join https://core.example.org --role compute --announce-url http://203.0.113.9:4020 --prefix 2001:db8:1:2::/64',
        'skerry join https://core.example.org --role gateway --domain apps.example.org --yes',
        'skerry join https://core.example.org --role core --dry-run',
      ),
    )
    .action(
      bind<JoinOptions>(async (context, options, [url]) =>
        (await import('../joining/join.ts')).joinNetwork(context, url!, options),
      ),
    );
}

function addLeave(program: Command, bind: Bind): void {
  program
    .command('leave')
    .description('take this server out of a network: empty it first, then stop the daemon')
    .option('--role <role>', `${ROLES.join(', ')} (default: the only one with settings here)`, parseRole)
    .option('--settings <file>', "file of the daemon's settings (default: as for join)")
    .option('--scheduler <url>', 'the scheduler (default: where the network says)', parseHttpUrl)
    .addOption(
      new Option('--timeout <duration>', 'how long to wait until the node is empty, and until it has ended')
        .argParser(parseWaitMs)
        .default(LEAVE_MS, '30m'),
    )
    .option('--dry-run', 'say what would be done, and change nothing')
    .option('--force', 'leave although something is still there; say what stays')
    .option(...YES_OPTION)
    .addHelpText(
      'after',
      examples(
        'skerry leave --role compute --dry-run',
        'skerry leave --role compute',
        'skerry leave --role gateway --force --yes',
      ),
    )
    .action(
      bind<LeaveOptions>(async (context, options) =>
        (await import('../joining/leave.ts')).leaveNetwork(context, options),
      ),
    );
}
