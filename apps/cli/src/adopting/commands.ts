import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { AdoptedService } from './kinds.ts';
import type { AdoptOptions } from './open.ts';

type Service = AdoptedService | 'scheduler';

const WHAT: Readonly<Record<Service, string>> = {
  scheduler:
    "have a new scheduler's key sign the placements of an old one, so that they stay once core nodes trust only the new key",
  credit:
    "have a new credit service's key sign the purchases, charges, notices, prices and stops of an old one, so that balances and stopped instances stay once core nodes trust only the new key",
  monitor:
    "have a new monitor's key sign the measurements of an old one, so that nodes keep their hours once core nodes trust only the new key",
};

/** `adopt` below a service whose key may leak. @param parent the command of the daemon */
export function addAdoptCommand(parent: Command, service: Service, bind: Bind): void {
  const called = `skerry ${service} adopt 0x... --until 2026-11-30T08:00Z --key-file ${service}/key`;
  parent
    .command('adopt')
    .description(WHAT[service])
    .argument('<address>', 'of the old key')
    .requiredOption(
      '--until <time>',
      'what the old key signed later does not count: Unix seconds or ISO 8601, at least ten minutes before it can have leaked',
    )
    .requiredOption(
      '--key-file <file>',
      `key file of the new service ("skerry ${service} address --json" says where)`,
    )
    .option('--dry-run', 'show what would be signed, and sign none')
    .addHelpText('after', examples(`${called} --dry-run`, `${called} --json`))
    .action(
      bind<AdoptOptions>(async (context, options, [address]) =>
        service === 'scheduler'
          ? (await import('../scheduler/adopt.ts')).adoptPlacements(context, address!, options)
          : (await import('./adopt-signed.ts')).adoptSigned(context, service, address!, options),
      ),
    );
}
