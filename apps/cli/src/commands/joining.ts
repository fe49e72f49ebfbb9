import { type Command, InvalidArgumentError } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { DoctorOptions } from '../doctor/doctor.ts';
import type { Role } from '../joining/roles.ts';
import { parseHttpUrl } from '../options.ts';

const ROLES: readonly Role[] = ['compute', 'gateway', 'core', 'monitor'];

const parseRole = (text: string): Role => {
  if (!ROLES.includes(text as Role)) throw new InvalidArgumentError(`Expected one of ${ROLES.join(', ')}.`);
  return text as Role;
};

/** What an operator says of a node; the same words before it joins and when it does. */
const addAnswers = (command: Command) =>
  command
    .option('--announce-url <url>', 'where others reach the node (compute, core)', parseHttpUrl)
    .option('--prefix <prefix>', 'the IPv6 /64 that is routed to this machine (compute)')
    .option('--domain <domain>', 'the domain whose wildcard record leads here (gateway)')
    .option(
      '--settings <file>',
      "file of the daemon's settings (default: /etc/skerry/ROLE.env, or your configuration directory)",
    );

/** From an empty machine to a member of a network, and back. */
export function addJoiningCommands(program: Command, bind: Bind): void {
  addAnswers(
    program
      .command('doctor')
      .description('look at this machine for what a role needs; exit code 1 if something is missing')
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
