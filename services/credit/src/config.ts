import { type ConfigOf, defineConfig, generalRateSettings, settings } from '@skerry/kit';

/** Settings of the credit service. */
export const creditConfig = defineConfig('SKERRY_CREDIT', {
  host: settings.host(),
  port: settings.port(4032, 'HTTP port'),
  coreUrl: settings.coreUrl('the core node to read from and publish to'),
  dataDir: settings.directory('data', 'credit', 'directory for the key and the purchases; back up the key'),
  salesFile: settings.optionalText('file that lists the tokens accepted on each chain (docs/credit.md)'),
  pollIntervalMs: settings.integer(50, 600_000, 2_000, 'time between two checks for transfers, in ms'),
  charging: settings.flag(true, 'whether to charge for instances, programs and files'),
  chargeIntervalSeconds: settings.integer(1, 3_600, 10, 'time between two checks for charges, in seconds'),
  watchIntervalSeconds: settings.integer(1, 86_400, 60, 'time between two checks of balances, in seconds'),
  lowHours: settings.integer(
    1,
    8_760,
    72,
    'announce a balance as low when it lasts less than this, in hours',
  ),
  graceHours: settings.integer(
    0,
    8_760,
    24,
    'time between announcing a low balance and stopping instances, in hours',
  ),
  enforcement: settings.flag(false, 'whether to stop instances of owners without credit'),
  ...generalRateSettings(),
});

export type CreditConfig = ConfigOf<typeof creditConfig>;
