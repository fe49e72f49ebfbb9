import { type ConfigOf, defineConfig, settings } from '@skerry/kit';

/** Settings of the credit service. */
export const creditConfig = defineConfig('SKERRY_CREDIT', {
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  port: settings.port(4032, 'HTTP port'),
  coreUrl: settings.url('http://localhost:4024', 'the core node to read from and publish to'),
  dataDir: settings.directory('data', 'credit', 'where the key and the purchases are'),
  salesFile: settings.optionalText(
    'a file that says which tokens are taken on which chains (docs/credit.md)',
  ),
  pollMs: settings.integer(50, 600_000, 2_000, 'how often transfers are looked for, in ms'),
  charging: settings.flag(true, 'whether instances, programs and files are charged'),
  chargeSeconds: settings.integer(1, 3_600, 10, 'how often it is looked for what to charge, in seconds'),
  watchSeconds: settings.integer(1, 86_400, 60, 'how often balances are looked at, in seconds'),
  lowHours: settings.integer(1, 8_760, 72, 'a balance is announced as low when it lasts for less, in hours'),
  graceHours: settings.integer(
    0,
    8_760,
    24,
    'how long an announced low balance may be before instances are stopped, in hours',
  ),
  enforcement: settings.flag(false, 'whether instances of owners without credit are stopped'),
});

export type CreditConfig = ConfigOf<typeof creditConfig>;
